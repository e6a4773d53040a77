"""Draw a moving network as a picture or film: devices on the map, and a cell's accuracy and number of devices."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from edgefl.analysis.figures.moving import MovingDrawing
from edgefl.analysis.measures.moving_run import MovingRun, moving_run
from edgefl.analysis.runs.clock import HOURS
from edgefl.analysis.runs.load import Paths, Runs

FILMS = (".gif", ".webp")
FRAMES, FILM_DPI = 130, 105
FRAME_MS, LAST_MS = 110, 2500
# simulated time of a film's frame while no device moves; the more devices move, the shorter it is
RESTING_S, WALKED_M = 1200.0, 800.0


def draw_moving(
    runs: Paths | Runs,
    out: str | Path,
    *,
    cell: int = 0,
    at_hour: float | None = None,
    phone: bool = False,
) -> Path:
    """Draw a run at a time, or as a film: the map next to a cell's accuracy and devices.

    Args:
        runs: one run directory with positions (record.positions_s).
        out: the picture to write: .png, .pdf, .svg; or a film: .gif, .webp.
        cell: its model and devices are drawn over time.
        at_hour: time of the picture, in hours by the scenario's clock (`begin_hour`) or, without a clock, since the
            start; by default the middle of the run. A film shows the whole run.
        phone: put the map on top instead of beside, for narrow pages.

    Raises:
        ValueError: several runs, no positions, no such cell, or a file that cannot be written.
    """
    out = Path(out)
    day = moving_run(Runs.of([runs]), cell)
    drawing = MovingDrawing(day, phone=phone)
    try:
        if out.suffix in FILMS:
            _film(drawing, day, out)
        else:
            drawing.show(_time_s(day, at_hour))
            drawing.figure.savefig(out)
    except OSError as error:
        raise ValueError(f"cannot write {out} ({error.strerror or error}): name another file") from error
    return out


def _time_s(day: MovingRun, at_hour: float | None) -> float:
    begin_h, end_h = day.clock.hours(0.0), day.clock.hours(float(day.times_s[-1]))
    hour = (begin_h + end_h) / 2 if at_hour is None else at_hour
    hour += HOURS * (hour < begin_h)
    if not begin_h <= hour <= end_h:
        raise ValueError(f"no hour {hour:g} in the run, which lasts from {begin_h:g} to {end_h:g}")
    return float((hour - begin_h) / HOURS * day.clock.day_s)


def frame_times_s(day: MovingRun) -> np.ndarray:
    """Choose the times of a film's frames: RESTING_S apart while no device moves, closer the more devices move."""
    moved_m = np.hypot(*(day.places_m[1:] - day.places_m[:-1]).transpose(2, 0, 1))
    moved_m[~(moved_m < 0.5 * day.ground.layout["radius_m"])] = 0.0
    spent = np.diff(day.times_s) / RESTING_S + moved_m.sum(axis=1) / WALKED_M
    reel = np.concatenate([[0.0], np.cumsum(spent)])
    return np.interp(np.linspace(0.0, reel[-1], FRAMES), reel, day.times_s)


def _film(drawing: MovingDrawing, day: MovingRun, out: Path) -> None:
    frames = []
    canvas: Any = drawing.figure.canvas
    drawing.figure.set_dpi(FILM_DPI)
    for time_s in frame_times_s(day):
        drawing.show(float(time_s))
        canvas.draw()
        frames.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    options: dict[str, Any] = {"quality": 75, "method": 4} if out.suffix == ".webp" else {"optimize": True}
    frames[0].save(
        out,
        save_all=True,
        append_images=frames[1:],
        duration=[FRAME_MS] * (len(frames) - 1) + [LAST_MS],
        loop=0,
        **options,
    )
