"""The picture of a scenario: its map, who is where when, and which labels there are. No display is needed."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, RegularPolygon
from matplotlib.patches import Rectangle as Box
from matplotlib.ticker import MaxNLocator

from edgefl.commands.outlook import Outlook
from edgefl.places.areas import Area

# Okabe and Ito's colour-blind-safe palette
PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000"]
DASHES: list[Any] = ["-", (0, (5, 1.5)), (0, (1.5, 1.2))]
MOST_TRACKS = 60
MOST_CELLS = 8
MANY = 150  # handovers
SOFT = "#5a646c"


def draw(outlook: Outlook, path: Path, dpi: int = 120) -> None:
    """Write the picture; PNG, PDF, SVG or WebP, by the file's name."""
    figure = Figure(figsize=(10.4, 5.6), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.25, 1])
    _map(figure, figure.add_subplot(grid[:, 0]), outlook)
    beside = figure.add_subplot(grid[0, 1] if outlook.mix else grid[:, 1])
    _population(beside, outlook) if _changes(outlook) else _links(beside, outlook)
    if outlook.mix:
        _labels(figure.add_subplot(grid[1, 1]), outlook)
    scenario = outlook.world.scenario
    figure.suptitle(
        f"{scenario.name}: {outlook.world.count} devices, a round of {outlook.latency_s:.3g} s and "
        f"{outlook.energy_j:.3g} J",
        fontsize=12,
        x=0.01,
        ha="left",
    )
    quality: dict[str, Any] = {"pil_kwargs": {"quality": 72}} if path.suffix == ".webp" else {}
    canvas.print_figure(path, dpi=dpi, **quality)


def _map(figure: Figure, axes: Axes, outlook: Outlook) -> None:
    world, reach_m = outlook.world, outlook.reach_m
    scenario, sites_m = world.scenario, world.sites_m
    image = axes.imshow(
        outlook.snr_db,
        extent=(-reach_m, reach_m, -reach_m, reach_m),
        origin="lower",
        cmap="viridis",
        alpha=0.75,
        interpolation="bilinear",
    )
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.8, fraction=0.03, pad=0.01, aspect=32)
    bar.set_label("SNR without fading, dB; above: bit/s/Hz", fontsize=8.5)
    bar.ax.tick_params(labelsize=8)
    cap = scenario.radio.max_efficiency

    def efficiency(db: float) -> float:
        shannon = float(np.log2(1 + 10 ** (db / 10)))
        return shannon if cap is None else min(cap, shannon)

    second = bar.ax.secondary_xaxis("top")
    low, high = image.get_clim()
    ticks = [tick for tick in bar.get_ticks() if low <= tick <= high]
    second.set_xticks(ticks, [f"{efficiency(tick):.1f}" for tick in ticks], fontsize=8)
    for name, area in scenario.areas.items():
        _area(axes, name, area)
    _cells(axes, outlook)
    tracks_m = outlook.tracks_m  # fmax and fmin pass over the times at which a device is absent
    moving = np.nan_to_num(np.fmax.reduce(tracks_m) - np.fmin.reduce(tracks_m)).max(axis=1, initial=0)
    walkers = np.flatnonzero(moving > 0.5)
    for device in walkers[:MOST_TRACKS]:
        track = outlook.tracks_m[:, device].copy()
        jumps = np.flatnonzero(np.hypot(*np.diff(track, axis=0).T) > 0.6 * reach_m)
        track[jumps + 1] = np.nan  # came in on the other side
        axes.plot(*track.T, color="white", linewidth=0.8, alpha=0.65)
    axes.scatter(
        outlook.tracks_m[0, :, 0],
        outlook.tracks_m[0, :, 1],
        s=13,
        color="#1d2328",
        edgecolor="white",
        linewidth=0.5,
        zorder=4,
    )
    if len(outlook.handovers_m):
        axes.scatter(
            outlook.handovers_m[:, 0],
            outlook.handovers_m[:, 1],
            marker="x",
            s=16 * min(1.0, (MANY / len(outlook.handovers_m)) ** 0.75),  # many stay small
            color="#D40000",
            linewidth=0.8,
            zorder=5,
        )
    axes.scatter(sites_m[:, 0], sites_m[:, 1], marker="^", s=70, color="white", edgecolor="black", zorder=6)
    for site, (x_m, y_m) in enumerate(sites_m if len(sites_m) <= 19 else []):
        axes.annotate(
            str(site),
            (x_m, y_m),
            xytext=(0, -14),
            textcoords="offset points",
            fontsize=8,
            ha="center",
            zorder=6,
        )
    ways = " at the start, lines: their ways" if len(walkers) else ", which stay where they are"
    crosses = ", red crosses: handovers" if len(outlook.handovers_m) else ""
    axes.set_title(f"dots: devices{ways}{crosses}", fontsize=8.5, color=SOFT, loc="left")
    axes.set(xlim=(-reach_m, reach_m), ylim=(-reach_m, reach_m))
    axes.tick_params(labelsize=8)
    axes.set_xlabel("m", fontsize=8.5, labelpad=1)


def _cells(axes: Axes, outlook: Outlook) -> None:
    layout = outlook.world.scenario.layout
    look: dict[str, Any] = {"fill": False, "edgecolor": "white", "linewidth": 1.2}
    if layout.rings:
        for site in outlook.world.sites_m:
            axes.add_patch(
                RegularPolygon(tuple(site), 6, radius=layout.isd_m / np.sqrt(3), orientation=0, **look)
            )
    elif layout.sites is None:
        axes.add_patch(Circle((0, 0), outlook.world.extent.radius_m, **look))
    if layout.sectors > 1:
        for x_m, y_m in outlook.world.sites_m:
            for panel in range(layout.sectors):
                edge = np.radians(layout.azimuth_deg + 60 + 120 * panel)
                length_m = 0.16 * outlook.reach_m
                axes.plot(
                    [x_m, x_m + length_m * np.cos(edge)],
                    [y_m, y_m + length_m * np.sin(edge)],
                    color="white",
                    linewidth=1.2,
                )


def _area(axes: Axes, name: str, area: Area) -> None:
    look: dict[str, Any] = {"facecolor": "white", "alpha": 0.28, "edgecolor": "black", "linewidth": 0.8}
    if area.disc:
        axes.add_patch(Circle(area.disc.centre_m, area.disc.radius_m, **look))
        x_m, y_m = area.disc.centre_m[0], area.disc.centre_m[1] + area.disc.radius_m
    elif area.rectangle:
        (left, low), (right, high) = area.rectangle.from_m, area.rectangle.to_m
        axes.add_patch(Box((left, low), right - left, high - low, **look))
        x_m, y_m = (left + right) / 2, max(low, high)
    elif area.polygon:
        corners = np.array(area.polygon.points_m)
        axes.add_patch(Polygon(corners, **look))
        x_m, y_m = corners[:, 0].mean(), corners[:, 1].max()
    else:
        return
    axes.annotate(name, (x_m, y_m), xytext=(0, 3), textcoords="offset points", fontsize=8.5, ha="center")


def _changes(outlook: Outlook) -> bool:
    """Whether there is anything to see in the population by time."""
    return outlook.population.shape[1] > 1 or len(np.unique(outlook.population)) > 1


def _links(axes: Axes, outlook: Outlook) -> None:
    """How good the devices' links are at the start."""
    axis = np.linspace(-outlook.reach_m, outlook.reach_m, len(outlook.snr_db))
    places_m = outlook.tracks_m[0][np.isfinite(outlook.tracks_m[0]).all(axis=1)]
    column, row = (np.abs(axis[:, None] - place_m).argmin(axis=0) for place_m in places_m.T)
    found = outlook.snr_db[row, column]
    axes.hist(found[np.isfinite(found)], bins=12, color=PALETTE[0], rwidth=0.92)
    axes.set_title(
        f"links of the {len(places_m)} devices, all the time in the cell", fontsize=9.5, loc="left"
    )
    axes.set_xlabel("SNR without fading, dB", fontsize=8.5)
    axes.set_ylabel("devices", fontsize=8.5)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    _plain(axes)


def _population(axes: Axes, outlook: Outlook) -> None:
    hours = outlook.times_s[-1] > 7200
    times = outlook.times_s / (3600 if hours else 1)
    cells = outlook.population.shape[1]
    here = np.isfinite(outlook.tracks_m[:, :, 0]).sum(axis=1)
    if cells > 1:
        shown = np.sort(np.argsort(-outlook.population.sum(axis=0), kind="stable")[:MOST_CELLS])
        for number, cell in enumerate(shown):
            axes.step(
                times,
                outlook.population[:, cell],
                color=PALETTE[number % 7],
                linestyle=DASHES[number % 3],
                linewidth=1.4,
                label=f"cell {cell}",
                where="post",
            )
        axes.legend(fontsize=7.5, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.05))
        what = (
            "devices in each cell"
            if cells <= MOST_CELLS
            else f"devices in the {MOST_CELLS} fullest of {cells} cells"
        )
    else:
        axes.step(times, outlook.population[:, 0], color=PALETTE[0], where="post")
        what = "devices in the cell"
        if (here != outlook.population[:, 0]).any():
            axes.step(times, here, color=SOFT, linestyle=":", where="post")
            what += " (dotted: with those outside or off)"
    axes.set_title(what, fontsize=9.5, loc="left")
    axes.set_xlabel("simulated time, h" if hours else "simulated time, s", fontsize=8.5)
    _plain(axes)


def _labels(axes: Axes, outlook: Outlook) -> None:
    sessions = list(outlook.mix)
    labels = sorted({label for mix in outlook.mix.values() for label in mix})
    below = np.zeros(len(sessions))
    shades = np.linspace(0, 1, max(len(labels), 2))
    from matplotlib import colormaps

    for number, label in enumerate(labels):
        counts = np.array([outlook.mix[session].get(label, 0) for session in sessions], float)
        shares = counts / np.array([sum(outlook.mix[session].values()) for session in sessions])
        bars = axes.bar(
            sessions, shares, bottom=below, color=colormaps["cividis"](shades[number]), width=0.82
        )
        if len(labels) <= 12:
            texts = [str(label) if share > 0.045 else "" for share in shares]
            ink = "white" if shades[number] < 0.55 else "black"
            axes.bar_label(bars, labels=texts, label_type="center", fontsize=7, color=ink)
        below += shares
    axes.set_title("labels that devices hold, by session", fontsize=9.5, loc="left")
    axes.set_xlabel("session", fontsize=8.5)
    axes.set(xticks=sessions, ylim=(0, 1))
    _plain(axes)


def _plain(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.set_ylim(bottom=0)
