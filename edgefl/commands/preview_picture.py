"""Draw the picture of `edgefl preview`: map, devices per cell over time, and labels. Drawing needs no display."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from edgefl.analysis.figures.clock import time_axis
from edgefl.analysis.figures.map import COLOURS, MapDrawing
from edgefl.analysis.figures.style import INK, PALETTE, SOFT, heading, plain, whole
from edgefl.analysis.page.formatting import count_of
from edgefl.analysis.page.own_files import DRAWN_BY, signed
from edgefl.commands.preview_data import Preview
from edgefl.mobility.static import Static
from edgefl.run.progress import three_digits

SIZE_INCH = (32 / 3, 19 / 3)
MAP, BAR = (0.012, 0.135, 0.45, 0.758), (0.062, 0.088, 0.35, 0.014)
WHOLE, TOP, BOTTOM = (0.55, 0.135, 0.41, 0.72), (0.55, 0.565, 0.41, 0.29), (0.55, 0.088, 0.41, 0.31)
SIGNAL = LinearSegmentedColormap.from_list("signal", ["#a9b4be", "#ffffff"])  # a weak signal is dark
SHADES = "Blues"
SAME_DB = 0.5  # if the SNR varies less than this over the map, the bar has one tick
MOST_CELLS = 5  # maximum number of cells drawn as lines; more are drawn as a heat map
SHORTEST_M = 1.0  # length of the shortest track that is drawn
MOST_LABELS = 20  # maximum number of labels that are named
FAINT, STRONG, MANY = 0.25, 0.7, 60  # opacity of tracks of MANY or more devices; highest opacity


def draw(preview: Preview, path: Path, dpi: int = 120) -> None:
    """Write the picture as PNG, PDF, SVG or WebP, depending on the file's suffix."""
    figure = Figure(figsize=SIZE_INCH)
    canvas = FigureCanvasAgg(figure)
    drawn = _map(figure, preview)
    beside = figure.add_axes(TOP if preview.mix else WHOLE)
    _population(beside, preview, drawn) if _changes(preview) else _links(beside, preview)
    if preview.mix:
        _labels(figure.add_axes(BOTTOM), preview)
    federations = len(preview.world.by_federation)
    costs = f"{federations} federations" if federations > 1 else _costs(preview)
    title = f"{preview.world.scenario.name}: {count_of(preview.forecast.devices, 'device')}, {costs}"
    heading(figure, 0.965, title, _explained(preview))
    webp = path.suffix == ".webp"
    how = {"pil_kwargs": {"quality": 72, "xmp": DRAWN_BY}} if webp else {"metadata": signed(path)}
    canvas.print_figure(path, dpi=dpi, **how)


def _costs(preview: Preview) -> str:
    """Return the mean time and energy of the first rounds, with the number of rounds over which each is averaged."""
    probe = preview.forecast.probe
    timed, counted = (
        f"first{f' {n} rounds' if n > 1 else ' round'}" for n in (probe.rounds, probe.energy_rounds)
    )
    apart = " and" if timed == counted else f", {counted} of"
    return f"{timed} of {three_digits(probe.latency_s)} s{apart} {probe.energy} J"


def _explained(preview: Preview) -> str:
    """Explain the marks of the map."""
    more = " and marked" if len(preview.world.served) > len(COLOURS) else ""
    several = f", coloured{more} by their cell" if preview.world.scenario.layout.several else ""
    grey = " (grey: no server)" if len(preview.world.served) < preview.ground.layout["cells"] else ""
    ways = (
        f" at the start{several}{grey}; lines: their tracks"
        if _ways(preview)
        else f", which do not move{_so_far(preview)}{several}"
    )
    crosses = f"; crosses: handovers {preview.walked}" if len(preview.handovers_m) else ""
    return f"{'Marks' if more else 'Dots'}: devices{ways}{crosses}."


def _so_far(preview: Preview) -> str:
    """Return the phrase that limits a statement to the time shown; '' if no device ever moves."""
    kinds = preview.world.scenario.devices.kinds()
    return "" if all(isinstance(kind.mobility, Static) for kind in kinds) else " in the time shown"


def _map(figure: Figure, preview: Preview) -> MapDrawing:
    """Draw cells, areas and streets over the signal map, then the devices' start positions and tracks."""
    axes = figure.add_axes(MAP)
    axes.axis("off")
    if np.isfinite(preview.snr_db).any():
        _signal(figure, axes, preview)
    drawn = MapDrawing(axes, preview.ground, preview.world.served, (0.0, 0.0), preview.reach_m, numbered=True)
    ways_m = _ways(preview)
    nowhere, count = np.full(len(ways_m), np.nan), preview.tracks_m.shape[1]
    strength = float(np.clip(FAINT * np.sqrt(MANY / count), FAINT, STRONG))
    drawn.show(preview.tracks_m[0], preview.serving, ways_m, nowhere, preview.handovers_m, strength=strength)
    return drawn


def _ways(preview: Preview) -> list[np.ndarray]:
    """Return devices' tracks as lines [points, 2], cut where a device rests or jumps to the map's other side.

    Tracks shorter than SHORTEST_M are left out, as a picture cannot show them.
    """
    lines = []
    for track_m in preview.tracks_m.transpose(1, 0, 2):
        length_m = np.hypot(*np.diff(track_m, axis=0).T)
        moves = (length_m > 0.001) & (length_m < 0.6 * preview.reach_m)
        if length_m[moves].sum() < SHORTEST_M:
            continue
        edges = np.flatnonzero(np.diff(np.concatenate([[False], moves, [False]])))
        lines += [track_m[begin : end + 1] for begin, end in edges.reshape(-1, 2)]
    return lines


def _signal(figure: Figure, axes: Axes, preview: Preview) -> None:
    """Shade the map by the SNR of the strongest cell, with a bar of SNR and payload rate below."""
    reach_m = preview.reach_m
    # without these limits, a few places close to sites would use half of the shades
    low, high = np.nanpercentile(preview.snr_db, [2, 98])
    same_db = round(float(low + high) / 2, 1) if high - low < SAME_DB else None
    if same_db is not None:
        low, high = same_db - SAME_DB, same_db + SAME_DB
    image = axes.imshow(
        preview.snr_db,
        extent=(-reach_m, reach_m, -reach_m, reach_m),
        origin="lower",
        cmap=SIGNAL,
        vmin=low,
        vmax=high,
        interpolation="bilinear",
        zorder=0,
    )
    bar = figure.colorbar(
        image, cax=figure.add_axes(BAR), orientation="horizontal", extend="both", extendfrac=0.02
    )
    bar.outline.set_edgecolor("#9aa0a6")
    bar.set_label("SNR without fading (dB); above: bit/s/Hz at this SNR", fontsize=8.5, color=INK)
    ticks_db = [tick for tick in bar.get_ticks() if low <= tick <= high] if same_db is None else [same_db]
    bar.set_ticks(ticks_db)  # otherwise the bar changes its ticks after the axis above it is drawn
    carried = [f"{each:.1f}" for each in preview.carried(np.array(ticks_db))]
    if len(set(carried)) == 1:
        above_db, carried = [float(np.mean(ticks_db))], carried[:1]
    else:  # ticks beyond the highest rate would all show that rate
        new = [at for at, text in enumerate(carried) if text not in carried[:at]]
        above_db, carried = [ticks_db[at] for at in new], [carried[at] for at in new]
    above = bar.ax.secondary_xaxis("top")
    above.set_xticks(above_db, carried)
    for axis in (bar.ax, above):
        axis.tick_params(labelsize=8, color="#9aa0a6", labelcolor=INK, length=3)


def _changes(preview: Preview) -> bool:
    """Whether the number of devices in a cell changes over time or differs between cells."""
    return preview.population.shape[1] > 1 or len(np.unique(preview.population)) > 1


def _title(axes: Axes, words: str) -> None:
    axes.set_title(words, fontsize=10.5, fontweight="bold", color=INK, loc="left", pad=7)


def _links(axes: Axes, preview: Preview) -> None:
    """Draw the distribution of the devices' SNR at the start."""
    axis = np.linspace(-preview.reach_m, preview.reach_m, len(preview.snr_db))
    places_m = preview.tracks_m[0][np.isfinite(preview.tracks_m[0]).all(axis=1)]
    column, row = (np.abs(axis[:, None] - place_m).argmin(axis=0) for place_m in places_m.T)
    snr_db = preview.snr_db[row, column]
    plain(axes)
    axes.hist(snr_db[np.isfinite(snr_db)], bins=12, color=PALETTE[0], rwidth=0.92)
    _title(axes, f"Links of {count_of(len(places_m), 'device')}")
    axes.set(xlabel="SNR without fading (dB)", ylabel="devices")
    whole(axes)


def _population(axes: Axes, preview: Preview, drawn: MapDrawing) -> None:
    """Draw the number of devices in each cell over time: a line per cell, or a heat map if there are many cells."""
    population, cells = preview.population, preview.population.shape[1]
    plain(axes)
    times = time_axis((axes,), preview.clock, float(preview.times_s[-1]), ticks=8)(preview.counted_s)
    if cells > MOST_CELLS:
        _shades(axes, population, times)
        return
    title = "Devices by strongest cell" if cells > 1 else "Devices in the cell"
    for cell in range(cells):
        look: dict[str, Any] = {"color": drawn.colour(cell), "label": f"cell {cell}", "linewidth": 1.6}
        axes.step(times, population[:, cell], where="post", **look)
    if cells > 1:
        narrow: dict[str, Any] = {
            "handlelength": 1.0,
            "handletextpad": 0.4,
            "columnspacing": 0.9,
            "ncols": cells,
        }
        axes.legend(fontsize=8, frameon=False, loc="lower right", bbox_to_anchor=(1.02, 0.985), **narrow)
    else:
        every = (len(preview.times_s) - 1) // (len(times) - 1)
        anywhere = np.isfinite(preview.tracks_m[::every, :, 0]).sum(axis=1)
        if (anywhere != population[:, 0]).any():
            axes.step(times, anywhere, color=SOFT, linestyle=":", where="post")
            title += " (dotted: also those outside or off)"
    _title(axes, title)
    whole(axes)


def _shades(axes: Axes, population: np.ndarray, times: np.ndarray) -> None:
    """Draw the number of devices in many cells over time, a row per cell; darker means more devices."""
    ends = (float(times[0]), float(times[-1]), population.shape[1] - 0.5, -0.5)
    image = axes.imshow(
        population.T, extent=ends, aspect="auto", cmap=SHADES, interpolation="nearest", vmin=0
    )
    _bar(axes, image, integer=True)
    _title(axes, "Devices by strongest cell")
    axes.set_ylabel("cell")
    whole(axes, from_zero=False)
    axes.grid(False)


def _bar(axes: Axes, image: Any, *, integer: bool = False) -> None:
    """Add a colour bar beside a heat map."""
    assert axes.figure is not None
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    bar.outline.set_visible(False)
    whole(bar.ax, from_zero=False) if integer else None
    bar.ax.tick_params(length=0, labelsize=8)


def _labels(axes: Axes, preview: Preview) -> None:
    """Draw the share of each label among the devices' samples, by session or once if all sessions are alike."""
    sessions = list(preview.mix)
    labels = sorted({label for mix in preview.mix.values() for label in mix})
    shares = np.array(
        [[mix.get(label, 0) / sum(mix.values()) for mix in preview.mix.values()] for label in labels]
    )
    plain(axes)
    if np.ptp(shares, axis=1).max() < 0.005:
        axes.bar([str(label) for label in labels], 100 * shares[:, 0], color=PALETTE[0], width=0.8)
        again = f", in each of {len(sessions)} sessions" if len(sessions) > 1 else ""
        _title(axes, f"Labels held by devices{again}")
        axes.set(xlabel="label", ylabel="share of samples (%)")
    else:
        image = axes.imshow(100 * shares, aspect="auto", cmap=SHADES, vmin=0, interpolation="nearest")
        _bar(axes, image)
        _title(axes, "Labels held by devices (% of samples)")
        axes.set_xticks(range(len(sessions)), [str(session) for session in sessions])
        axes.set_yticks(range(len(labels)), [str(label) for label in labels])
        axes.set(xlabel="session", ylabel="label")
        axes.grid(False)
    if len(labels) > MOST_LABELS:
        (axes.xaxis if np.ptp(shares, axis=1).max() < 0.005 else axes.yaxis).set_ticks([0, len(labels) - 1])
