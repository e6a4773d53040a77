"""Draw the picture of `edgefl preview`: map, devices per cell over time, labels. It needs no display."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle, RegularPolygon
from matplotlib.ticker import MaxNLocator

from edgefl.analysis.figures.areas import area_patch
from edgefl.analysis.figures.style import DASHES, INK, PALETTE, SOFT
from edgefl.commands.preview_data import Preview

LINE = "#9aa0a6"
SIZES: dict[Any, float | str] = {
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
MOST_TRACKS = 60
MOST_CELLS = 5  # drawn as lines; more become rows of a heat map
MANY = 150  # handovers


@rc_context(SIZES)
def draw(preview: Preview, path: Path, dpi: int = 120) -> None:
    """Write the picture as PNG, PDF, SVG or WebP, by the file's name."""
    figure = Figure(figsize=(10.4, 5.6), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.25, 1])
    _map(figure, figure.add_subplot(grid[:, 0]), preview)
    beside = figure.add_subplot(grid[0, 1] if preview.mix else grid[:, 1])
    _population(beside, preview) if _changes(preview) else _links(beside, preview)
    if preview.mix:
        _labels(figure.add_subplot(grid[1, 1]), preview)
    name, probe = preview.world.scenario.name, preview.forecast.probe
    round_costs = f"{float(f'{probe.latency_s:.3g}'):,g} s and {float(f'{probe.energy_j:.3g}'):,g} J"
    title = f"{name}: {preview.forecast.devices} devices, a round of {round_costs}"
    figure.suptitle(title, fontsize=12.5, fontweight="bold", x=0.01, ha="left")
    quality: dict[str, Any] = {"pil_kwargs": {"quality": 72}} if path.suffix == ".webp" else {}
    canvas.print_figure(path, dpi=dpi, **quality)


def _map(figure: Figure, axes: Axes, preview: Preview) -> None:
    if np.isfinite(preview.snr_db).any():
        _signal(figure, axes, preview)
    places = preview.world.places.drawing()
    for area in places.get("areas", ()):
        _area(axes, area)
    axes.add_collection(LineCollection(places.get("streets", ()), color=INK, alpha=0.45, linewidth=1.1))
    _cells(axes, preview)
    tracks_m, reach_m = preview.tracks_m, preview.reach_m
    # fmax and fmin ignore the times at which a device is absent
    moving = np.nan_to_num(np.fmax.reduce(tracks_m) - np.fmin.reduce(tracks_m)).max(axis=1, initial=0)
    walkers = np.flatnonzero(moving > 0.5)
    for device in walkers[:MOST_TRACKS]:
        track = tracks_m[:, device].copy()
        jumps = np.flatnonzero(np.hypot(*np.diff(track, axis=0).T) > 0.6 * reach_m)
        track[jumps + 1] = np.nan  # entered on the other side
        axes.plot(*track.T, color="white", linewidth=0.8, alpha=0.65)
    x_m, y_m = tracks_m[0].T
    axes.scatter(x_m, y_m, s=13, color="#1d2328", edgecolor="white", linewidth=0.5, zorder=4)
    if len(preview.handovers_m):
        size = 16 * min(1.0, (MANY / len(preview.handovers_m)) ** 0.75)  # smaller if there are many
        x_m, y_m = preview.handovers_m.T
        axes.scatter(x_m, y_m, marker="x", s=size, color="#D40000", linewidth=0.8, zorder=5)
    sites_m = preview.world.sites_m
    axes.scatter(sites_m[:, 0], sites_m[:, 1], marker="^", s=70, color="white", edgecolor="black", zorder=6)
    beside: dict[str, Any] = {
        "xytext": (0, -14),
        "textcoords": "offset points",
        "fontsize": 8,
        "ha": "center",
    }
    for site, place_m in enumerate(sites_m if len(sites_m) <= 19 else []):
        axes.annotate(str(site), tuple(place_m), zorder=6, **beside)
    tracks = " at the start, lines: their tracks" if len(walkers) else ", which do not move"
    crosses = ", red crosses: handovers" if len(preview.handovers_m) else ""
    axes.set_title(f"dots: devices{tracks}{crosses}", fontsize=8.5, color=SOFT)
    axes.set(xlim=(-reach_m, reach_m), ylim=(-reach_m, reach_m))
    axes.set_xlabel("metres east of the origin", labelpad=1)
    axes.spines[:].set_visible(False)


def _signal(figure: Figure, axes: Axes, preview: Preview) -> None:
    reach_m = preview.reach_m
    image = axes.imshow(
        preview.snr_db,
        extent=(-reach_m, reach_m, -reach_m, reach_m),
        origin="lower",
        cmap="viridis",
        alpha=0.75,
        interpolation="bilinear",
    )
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.8, fraction=0.03, pad=0.01, aspect=32)
    bar.outline.set_visible(False)
    bar.set_label("SNR without fading, dB; above: bit/s/Hz at this SNR")
    low, high = image.get_clim()
    ticks_db = np.array([tick for tick in bar.get_ticks() if low <= tick <= high])
    carried = preview.carried(ticks_db)
    bar.ax.secondary_xaxis("top").set_xticks(ticks_db, [f"{each:.1f}" for each in carried])


def _cells(axes: Axes, preview: Preview) -> None:
    layout, sites_m = preview.world.scenario.layout, preview.world.sites_m
    look: dict[str, Any] = {"fill": False, "edgecolor": "white", "linewidth": 1.2}
    if layout.rings:
        for site in sites_m:
            axes.add_patch(RegularPolygon(tuple(site), 6, radius=layout.isd_m / np.sqrt(3), **look))
    elif layout.sites is None:
        axes.add_patch(Circle((0, 0), preview.world.extent.radius_m, **look))
    turn = 60 if layout.sectors > 1 else 0  # edges of sectors, or the bearings of single panels
    for begin_m, bearings in zip(sites_m, layout.bearings_deg, strict=False):
        lines = np.radians(np.add(bearings, turn))
        for end_m in begin_m + 0.16 * preview.reach_m * np.stack([np.cos(lines), np.sin(lines)], axis=-1):
            axes.plot(*np.stack([begin_m, end_m], axis=-1), color="white", linewidth=1.2)


def _area(axes: Axes, area: Mapping[str, Any]) -> None:
    """Draw an area as `Places.drawing` describes it, with its name above it."""
    look: dict[str, Any] = {"facecolor": "white", "alpha": 0.28, "edgecolor": "black", "linewidth": 0.8}
    axes.add_patch(area_patch(area, **look))
    if "radius" in area:
        x_m, y_m = area["centre"][0], area["centre"][1] + area["radius"]
    else:
        highest = np.array(max(area["points"], key=lambda ring: max(y_m for _, y_m in ring)))
        x_m, y_m = highest[:, 0].mean(), highest[:, 1].max()
    axes.annotate(
        area["name"], (x_m, y_m), xytext=(0, 3), textcoords="offset points", fontsize=8.5, ha="center"
    )


def _changes(preview: Preview) -> bool:
    """Whether the population changes over time or differs between cells."""
    return preview.population.shape[1] > 1 or len(np.unique(preview.population)) > 1


def _links(axes: Axes, preview: Preview) -> None:
    """Draw the distribution of the devices' SNR at the start."""
    axis = np.linspace(-preview.reach_m, preview.reach_m, len(preview.snr_db))
    places_m = preview.tracks_m[0][np.isfinite(preview.tracks_m[0]).all(axis=1)]
    column, row = (np.abs(axis[:, None] - place_m).argmin(axis=0) for place_m in places_m.T)
    snr_db = preview.snr_db[row, column]
    axes.hist(snr_db[np.isfinite(snr_db)], bins=12, color=PALETTE[0], rwidth=0.92)
    axes.set_title(f"links of the {len(places_m)} devices, which stay in the cell")
    axes.set(xlabel="SNR without fading, dB", ylabel="devices")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    _plain(axes)


def _population(axes: Axes, preview: Preview) -> None:
    population, hours = preview.population, preview.times_s[-1] > 7200
    times = preview.times_s / (3600 if hours else 1)
    cells = population.shape[1]
    if cells > MOST_CELLS:
        _shades(axes, population, times, hours=hours)
        return
    if cells > 1:
        for cell in range(cells):
            look = {"color": PALETTE[cell % 7], "linestyle": DASHES[cell % 3], "linewidth": 1.4}
            axes.step(times, population[:, cell], label=f"cell {cell}", where="post", **look)
        axes.legend(fontsize=7.5, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.05))
        title = "devices in each cell"
    else:
        axes.step(times, population[:, 0], color=PALETTE[0], where="post")
        title = "devices in the cell"
        anywhere = np.isfinite(preview.tracks_m[:, :, 0]).sum(axis=1)
        if (anywhere != population[:, 0]).any():
            axes.step(times, anywhere, color=SOFT, linestyle=":", where="post")
            title += " (dotted: including those outside or off)"
    axes.set_title(title)
    axes.set_xlabel("simulated time, h" if hours else "simulated time, s")
    _plain(axes)


def _shades(axes: Axes, population: np.ndarray, times: np.ndarray, *, hours: bool) -> None:
    """Draw many cells as rows; darker means more devices."""
    ends = (float(times[0]), float(times[-1]), population.shape[1] - 0.5, -0.5)
    image = axes.imshow(
        population.T, extent=ends, aspect="auto", cmap="Blues", interpolation="nearest", vmin=0
    )
    assert axes.figure is not None
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.04, pad=0.015)
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(4, integer=True)
    bar.ax.tick_params(length=0)
    axes.set_title("devices in each cell over time")
    axes.set(xlabel="simulated time, h" if hours else "simulated time, s", ylabel="cell")
    axes.yaxis.set_major_locator(MaxNLocator(7, integer=True))
    axes.spines[:].set_visible(False)


def _labels(axes: Axes, preview: Preview) -> None:
    sessions = list(preview.mix)
    labels = sorted({label for mix in preview.mix.values() for label in mix})
    below = np.zeros(len(sessions))
    shades = colormaps["Set3"].colors  # type: ignore[attr-defined]  # labels are unordered, and so are these colours
    for number, label in enumerate(labels):
        shares = np.array([mix.get(label, 0) / sum(mix.values()) for mix in preview.mix.values()])
        bars = axes.bar(sessions, shares, bottom=below, color=shades[number % len(shades)], width=0.82)
        if len(labels) <= 12:
            texts = [str(label) if share > 0.045 else "" for share in shares]
            axes.bar_label(bars, labels=texts, label_type="center", fontsize=7, color=INK)
        below += shares
    axes.set_title("labels held by devices, by session")
    axes.set(xticks=sessions, xlabel="session", ylabel="share of samples", ylim=(0, 1))
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(bottom=0)
