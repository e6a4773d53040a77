"""Draw a moving network as a picture or film, with a map of devices and a cell's accuracy and number of devices."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from edgefl.analysis.figures.clock import time_axis
from edgefl.analysis.figures.map import COLOURS, MapDrawing, points_of
from edgefl.analysis.figures.style import DPI, INK, SOFT, note, plain, whole
from edgefl.analysis.measures.moving_run import MovingRun, moving_run
from edgefl.analysis.page.own_files import DRAWN_BY, file_to_write, signed
from edgefl.analysis.runs.clock import HOURS
from edgefl.analysis.runs.load import Paths, Runs, given_runs, load_runs

PICTURES, FILMS = (".png", ".pdf", ".svg"), (".gif", ".webp")
FRAMES, FILM_DPI = 130, 105
FRAME_MS, LAST_MS = 110, 2500
# simulated time per frame of a film while no device moves; the time is shorter the more devices move
RESTING_S, WALKED_M = 1200.0, 800.0
WIDE_INCH, PHONE_INCH = (32 / 3, 16 / 3), (5.2, 7.6)
# map, accuracy, device count: left, bottom, width, height
WIDE = ((0.005, 0.01, 0.49, 0.98), (0.565, 0.44, 0.405, 0.38), (0.565, 0.09, 0.405, 0.23))
PHONE = ((0.0, 0.41, 1.0, 0.59), (0.1, 0.213, 0.845, 0.118), (0.1, 0.056, 0.845, 0.088))
CORNER, ROOM = (
    0.8,
    0.6,
)  # where a corner begins, and half the map's side if something is there, in shares of the world's
SHADES = (0.85, 0.37, 0.2)  # shades of the cell's colour, one per class
NARROWEST = 0.1  # minimum share of the axis for a session to be labelled


class _MovingDrawing:
    """A figure that can show any moment of one run.

    Args:
        phone: whether to put the map above the curves, so that map and curves are legible on a phone.
    """

    def __init__(self, day: MovingRun, *, phone: bool = False) -> None:
        self._day = day
        self.figure = Figure(figsize=PHONE_INCH if phone else WIDE_INCH, dpi=DPI)
        FigureCanvasAgg(self.figure)
        boxes = PHONE if phone else WIDE
        self._who = "people" if day.clock.begin_hour is not None else "devices"
        points = np.concatenate([points_of(day.ground), day.places_m.reshape(-1, 2)])
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        middle, side = (low + high) / 2, float((high - low).max())
        # the corners have a clock and a scale, and texts of sites end beyond them
        cornered = (np.abs(points - middle) > CORNER * side / 2).all(axis=1).any()
        half = side * (ROOM if cornered else 0.53)
        axes = self.figure.add_axes(boxes[0])
        axes.axis("off")
        self._map = MapDrawing(axes, day.ground, day.served, middle, half)
        self._explain(phone)
        left, top = (0.03, 0.985) if phone else (0.02, 0.97)
        self._clock = self.figure.text(left, top, "", fontsize=20, fontweight="bold", color=INK, va="top")
        self._accuracy, self._here = (self.figure.add_axes(box) for box in boxes[1:])
        self._cursors = self._draw_curves(phone)

    def show(self, time_s: float) -> None:
        """Update the figure to show the network at a simulated time."""
        day = self._day
        self._map.show(*day.at(time_s), *day.trails(time_s), day.handed_over(time_s))
        self._clock.set_text(day.clock.words(time_s))
        past = day.curve[day.curve["end_s"] <= time_s]
        line, dot, *cursors = self._cursors
        values = past["value"].tolist()
        values += values[-1:]  # holds until now
        places = self._place(np.append(past["end_s"], time_s))[: len(values)]
        line.set_data(places, values)
        dot.set_data(places[-1:], values[-1:])
        for cursor in cursors:
            cursor.set_xdata([self._place(time_s)] * 2)

    def _explain(self, phone: bool) -> None:
        """Write a legend of dots, colours and crosses below the map."""
        day = self._day
        several = len(day.served) > len(COLOURS)
        drawn, by = ("marks", "coloured and marked") if several else ("dots", "coloured")
        words = f"{drawn}: {self._who}, {by} by their serving cell"
        if len(day.handovers[0]):
            words += "; crosses: handovers"
        if len(day.served) < day.ground.layout["cells"]:
            words += "\n(grey: a cell without its own model)"
        left, bottom, width, _ = (PHONE if phone else WIDE)[0]
        look: dict[str, Any] = {"fontsize": 8.5, "color": SOFT, "ha": "center", "va": "bottom", "zorder": 6}
        self.figure.text(left + width / 2, bottom + 0.012, words, **look)

    def _draw_curves(self, phone: bool) -> list[Any]:
        day, colour = self._day, self._map.colour(self._day.served[0])
        top, bottom = self._accuracy, self._here
        for axes in (top, bottom):
            plain(axes)
            axes.tick_params(labelsize=9.5)
        place = self._place = time_axis(
            (top, bottom), day.clock, float(day.times_s[-1]), ticks=8 if phone else 9
        )
        begin, end = place(0.0), place(float(day.times_s[-1]))
        values = day.curve["value"]
        look: dict[str, Any] = {"color": colour, "drawstyle": "steps-post"}
        top.plot(place(day.curve["end_s"]), values, alpha=0.28, linewidth=1.6, **look)
        (line,) = top.plot([], [], linewidth=2.2, solid_capstyle="round", **look)
        (dot,) = top.plot([], [], "o", color=colour, markersize=6, markeredgecolor="white")
        if "(%)" in day.curve_name:
            top.set_ylim(10 * math.floor(float(values.min()) / 10), 100)
        else:
            top.set_ylim(bottom=0)
        starts = [place(start_s) for start_s, _ in day.sessions]
        for start, until, (_, words) in zip(starts, [*starts[1:], end], day.sessions, strict=True):
            top.axvline(start, color=SOFT, linewidth=0.7, linestyle=":")
            if until - start > NARROWEST * (end - begin):
                look = {"fontsize": 9, "linespacing": 0.95, "color": SOFT}
                note(top, words.replace(" ", "\n"), (start, 1.0), (1, 3), top=True, **look)
        lines = [axes.axvline(begin, color=INK, linewidth=0.9, alpha=0.7) for axes in (top, bottom)]
        self._draw_people(bottom, colour)
        titles = (top, day.curve_name, 30), (bottom, f"{self._who.capitalize()} in cell {day.served[0]}", 5)
        for axes, title, pad in titles:
            size = 10.5 if phone else 11.5
            axes.set_title(title, fontsize=size, fontweight="bold", color=colour, loc="left", pad=pad)
        return [line, dot, *lines]

    def _draw_people(self, axes: Axes, colour: str) -> None:
        """Stack the cell's devices by class, darkest at the bottom; label each class where its band is widest."""
        day = self._day
        hours = self._place(day.times_s)
        below = np.zeros(len(hours))
        here = day.serving == day.served[0]
        for number, (name, of) in enumerate(
            sorted(day.classes.items(), key=lambda one: -here[:, one[1]].sum())
        ):
            count = here[:, of].sum(axis=1)
            tint = 1 - (1 - np.array(to_rgb(colour))) * SHADES[min(number, len(SHADES) - 1)]
            axes.fill_between(hours, below, below + count, step="post", color=tint, linewidth=0)
            below += count
            if len(day.classes) > 1 and count.max() > 0.25 * here.sum(axis=1).max():
                middle = _middle_of_longest(count > 0.8 * count.max())
                at = below[middle] - count[middle] / 2
                ink = INK if number else "white"
                axes.text(hours[middle], at, name, fontsize=9.5, color=ink, ha="center", va="center")
        axes.set_ylim(0, 1.08 * float(below.max()))
        whole(axes)


def _middle_of_longest(holds: np.ndarray) -> int:
    """Return the middle index of the longest unbroken sequence of True values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]])))
    begins, ends = edges[::2], edges[1::2]
    longest = int((ends - begins).argmax())
    return int((begins[longest] + ends[longest] - 1) // 2)


def draw_moving(
    runs: Paths | Runs, out: str | Path, *, cell: int = 0, at_hour: float | None = None, phone: bool = False
) -> Path:
    """Draw a run at one point in time, or as a film, with the map beside a cell's accuracy and number of devices.

    Args:
        runs: one run directory, of a run with recorded positions (record.positions_s).
        out: the file to write: a picture (.png, .pdf, .svg) or a film (.gif, .webp).
        cell: the cell whose accuracy and number of devices the curves show.
        at_hour: time of the picture, in hours by the scenario's clock (`begin_hour`) or, without a clock, since the
            start; by default the middle of the run. A film shows the whole run.
        phone: whether to put the map above the curves instead of beside them, for narrow pages.

    Raises:
        ValueError: there are several runs, no positions or no such cell, the file is of another kind, or it cannot be
            written.
    """
    out = Path(out)
    if out.suffix not in (*PICTURES, *FILMS):
        raise ValueError(
            f"{out}: end the name with {', '.join(PICTURES)}, or for a film {' or '.join(FILMS)}"
        )
    if out.suffix in FILMS and at_hour is not None:
        raise ValueError(f"{out}: a film shows the whole run, so it has no hour (--at); a picture has one")
    file_to_write(out, "--picture")
    day = moving_run(given_runs([runs], load_runs, partial=None), cell)
    drawing = _MovingDrawing(day, phone=phone)
    try:
        if out.suffix in FILMS:
            _film(drawing, day, out)
        else:
            drawing.show(_time_s(day, at_hour))
            drawing.figure.savefig(out, metadata=signed(out))
    except OSError as error:
        raise ValueError(f"cannot write {out} ({error.strerror or error}): name another file") from error
    return out


def _time_s(day: MovingRun, at_hour: float | None) -> float:
    clock, end_s = day.clock, float(day.times_s[-1])
    begin_h, end_h = clock.hours(0.0), clock.hours(end_s)
    hour = (begin_h + end_h) / 2 if at_hour is None else at_hour
    asked_s = float((hour - begin_h) / HOURS * clock.day_s)
    hour += HOURS * (hour < begin_h)
    if not begin_h <= hour <= end_h:
        remedy = "; write 0:00:45 for 45 s" if clock.begin_hour is None else ""
        raise ValueError(
            f"{clock.words(asked_s)} is not in the run, which lasts from {clock.words(0.0)} to"
            f" {clock.words(end_s)}{remedy}"
        )
    return float((hour - begin_h) / HOURS * clock.day_s)


def frame_times_s(day: MovingRun) -> np.ndarray:
    """Choose the times of a film's frames: RESTING_S apart while all devices rest, closer if more devices move."""
    moved_m = np.hypot(*(day.places_m[1:] - day.places_m[:-1]).transpose(2, 0, 1))
    moved_m[~(moved_m < 0.5 * day.ground.layout["radius_m"])] = 0.0
    spent = np.diff(day.times_s) / RESTING_S + moved_m.sum(axis=1) / WALKED_M
    reel = np.concatenate([[0.0], np.cumsum(spent)])
    return np.interp(np.linspace(0.0, reel[-1], FRAMES), reel, day.times_s)


def _film(drawing: _MovingDrawing, day: MovingRun, out: Path) -> None:
    frames = []
    canvas: Any = drawing.figure.canvas
    drawing.figure.set_dpi(FILM_DPI)
    for time_s in frame_times_s(day):
        drawing.show(float(time_s))
        canvas.draw()
        frames.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    options: dict[str, Any] = {"optimize": True, "comment": DRAWN_BY}
    if out.suffix == ".webp":
        options = {"quality": 75, "method": 4, "xmp": DRAWN_BY}
    frames[0].save(
        out,
        save_all=True,
        append_images=frames[1:],
        duration=[FRAME_MS] * (len(frames) - 1) + [LAST_MS],
        loop=0,
        **options,
    )
