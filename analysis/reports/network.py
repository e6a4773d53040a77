"""Report key figures of the moving network: handovers, ping-pong, time of stay, and costs of interrupted work."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import SMALL, SOFT, legend, panels, series_styles
from edgefl.analysis.measures.metrics import RUN, training_rounds
from edgefl.analysis.measures.service import InService, Tables, ledgers
from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, count_of, unit_for, with_unit
from edgefl.analysis.page.markup import Quantity, quantities
from edgefl.analysis.page.report import Report, noted
from edgefl.analysis.runs.choices import Names, Out, Partial
from edgefl.analysis.runs.load import Paths, Runs, given_runs, load_as_variants
from edgefl.analysis.runs.vocabulary import (
    CAUSES,
    COMPLETED,
    EVENTS,
    GONE,
    HANDOVER,
    PING_PONG,
    PING_PONG_S,
    cause_of,
    check_known,
    split_outcome,
)

WHOLE = ["all", "completed"]  # devices_recorded and status of a run with a ledger and all rows of devices
PERIODS = 30  # number of periods of a run, for averages over time
# only the columns that the figures need, since each column is copied once per run
OF_EVENTS = ["time_s", "event", "device", "cell", "detail", "stay_s", "interruption_s"]
OF_DEVICES = ["device", "outcome", "downlink_bits", "uplink_bits", "energy_j"]


def report_network(
    *runs: Paths | Runs, partial: Partial = False, names: Names = (), out: Out = None
) -> Report:
    """Measure the network of all runs, and write network.csv, network_course.csv, network.png and .pdf."""
    given = given_runs(runs, load_as_variants, names=names, partial=partial)
    figures, course = handover_figures(given), over_time(given)
    notes = given.said()
    variants = course["variant"].nunique()
    if variants > MOST_SERIES:
        notes.append(f"the figure shows the first {MOST_SERIES} of {variants} variants")
    drawn = network_figure(course)
    return Report(
        given.folder(out),
        tables=[("", quantities(figures, ROWS))],
        sentences=[*_broken(given), *_wasted(given), *_uncovered(given), *noted(notes)],
        look=[] if drawn is None else [("Figure", "network.png", " and .pdf")],
        numbers={"network.csv": figures, "network_course.csv": course},
        figures={} if drawn is None else {"network": drawn},
    ).write()


def _broken(runs: Runs) -> Iterator[str]:
    """Yield a sentence on the causes that cut participations off in all runs, if any were cut off."""
    causes = Counter[str]()
    for outcome, count in runs.devices["outcome"].value_counts().items() if len(runs.devices) else ():
        cut = split_outcome(str(outcome))
        causes[cut.cause if cut and cut.cause in GONE else ""] += count
    told = [f"{count:,} because {CAUSES[cause]}" for cause, count in causes.items() if cause]
    yield from [f"Broken participations: {', '.join(told)}."] if told else []


def _wasted(runs: Runs) -> Iterator[str]:
    """Yield a sentence on the causes of wasted joules in all runs, the largest first, if any were wasted."""
    # a run that records only some participations does not record the waste of the others
    if not len(runs.devices) or (runs.info["devices_recorded"] != "all").any():
        return
    lost, joules = runs.devices[runs.devices["outcome"] != COMPLETED], Counter[str]()
    dispatches = lost["dispatch"] if "dispatch" in lost else [None] * len(lost)
    for outcome, dispatch, energy_j in zip(lost["outcome"], dispatches, lost["energy_j"], strict=True):
        cut = split_outcome(str(outcome))
        joules[cause_of(cut, dispatch) if cut else ""] += energy_j
    told = [
        f"{with_unit(energy_j, ENERGY_UNITS)} because {cause}"
        for cause, energy_j in joules.most_common()
        if energy_j > 0
    ]
    yield from [f"Wasted: {', '.join(told)}."] if told else []


def _uncovered(runs: Runs) -> Iterator[str]:
    """Yield a sentence on devices without a link at the start of rounds; for a single run, name those in no round."""
    out, info = runs.rounds.get("out_of_coverage", pd.Series(dtype=float)), runs.info
    if out.any():
        whole = len(info) == 1 and info[["devices_recorded", "status"]].iloc[0].tolist() == WHOLE
        never = sorted({*runs.ledger["device"]} - {*runs.devices["device"]}) if whole else []
        named = f"; in no round, for this or another reason: {', '.join(map(str, never))}" if never else ""
        many = f"{int((out > 0).sum()):,} of {count_of(len(out), 'round')}"
        yield f"When {many} began, some devices had no link, at most {count_of(int(out.max()), 'device')}{named}."


def handover_figures(runs: Runs) -> pd.DataFrame:
    """Count handovers, their interruptions and the costs of interrupted work, one row per run.

    Returns:
        variant, seed;
        handovers; handovers_per_device_hour (per hour that a device is in the area of the cells, switched on and
        charged);
        ping_pongs and ping_pong_share (handovers back to the previous cell within `PING_PONG_S`);
        time_of_stay_s (mean time connected to a cell before a handover, NaN without a handover);
        interruption_s (time without a cell after handovers, of all devices, within the simulated time) and
        interruption_share of that time;
        broken (participations cut off by the device's handover, departure, switch, battery or failed link);
        wasted_bits (sent or received in participations that did not complete) and wasted_j, their energy;
        wasted_share, wasted_j over all joules. `broken` and `wasted_*` are NaN unless devices.csv has all rounds.

    Raises:
        ValueError: the runs are so old that handovers were not recorded, or have an unknown event or outcome.
    """
    if "interruption_s" not in runs.events:
        raise ValueError(f"the runs in {runs.path} were made before handovers were recorded: run them again")
    return pd.DataFrame([_figures_of(own, runs) for own in _each(runs)])


def over_time(runs: Runs) -> pd.DataFrame:
    """Follow every run through equal periods of simulated time, a row per run and period.

    Returns:
        variant, seed; time_s (the middle of the period); handovers_per_hour of all devices, and ping_pongs_per_hour
        among these handovers; in_service (mean number of devices that are in the area of the cells, switched on and
        charged); round_s (mean latency of the training rounds that began in the period, NaN without such rounds).
    """
    longest_s = float(runs.info["simulated_s"].max())
    edges_s = np.linspace(0.0, longest_s, PERIODS + 1)
    rounds = _by_run(training_rounds(runs.rounds), ["start_s", "latency_s"])
    courses = [_course(own, runs, rounds(own.run), edges_s) for own in _each(runs)]
    return pd.concat(courses, ignore_index=True)


def _course(own: "Tables", runs: Runs, rounds: pd.DataFrame, edges_s: np.ndarray) -> pd.DataFrame:
    run, events = own.run, own.events
    until_s = np.clip(edges_s, 0.0, run.simulated_s)
    lasted_s = np.diff(until_s)
    lasted_s[lasted_s <= 0] = math.nan  # periods after the run's end have no rate
    handovers = events[events["event"] == HANDOVER]
    back = handovers[handovers["detail"] == PING_PONG]
    service = InService.of(own)
    period = np.clip(np.searchsorted(edges_s, rounds["start_s"], side="right") - 1, 0, len(edges_s) - 2)
    course = pd.DataFrame(
        {
            "variant": run.variant,
            "seed": run.seed,
            "time_s": (edges_s[1:] + edges_s[:-1]) / 2,
            "handovers_per_hour": 3600 * np.histogram(handovers["time_s"], edges_s)[0] / lasted_s,
            "ping_pongs_per_hour": 3600 * np.histogram(back["time_s"], edges_s)[0] / lasted_s,
            "in_service": service.devices - np.diff(service.missing_s(until_s)) / lasted_s,
            "round_s": rounds["latency_s"].groupby(period).mean().reindex(range(len(edges_s) - 1)).to_numpy(),
        }
    )
    return course[~np.isnan(lasted_s)]


def _each(runs: Runs) -> Iterator[Tables]:
    events, devices = _by_run(runs.events, OF_EVENTS), _by_run(runs.devices, OF_DEVICES)
    sessions, ledger = _by_run(runs.sessions, ["devices"]), _by_run(ledgers(runs), ["device", "energy_j"])
    for run in runs.info.itertuples():
        yield Tables(run, events(run), devices(run), sessions(run), ledger(run))


def _by_run(table: pd.DataFrame, columns: list[str]) -> Callable[[Any], pd.DataFrame]:
    """Split columns of a table by run, once for all runs, since there may be a thousand runs."""
    rows, some = table.groupby(RUN).indices, table[[name for name in columns if name in table]]

    def of(run: Any) -> pd.DataFrame:
        own = rows.get((run.variant, run.seed), np.empty(0, np.intp))
        if len(own) and own[-1] - own[0] + 1 == len(own):  # rows of a run are contiguous: a view suffices
            return some.iloc[own[0] : own[-1] + 1]
        return some.iloc[own]

    return of


def _figures_of(own: Tables, runs: Runs) -> dict[str, Any]:
    run, events, devices = own.run, own.events, own.devices
    check_known(events["event"].unique(), EVENTS, f"{run.path}/events.csv")
    handovers = events[events["event"] == HANDOVER]
    service = InService.of(own)
    whole = run.devices_recorded == "all"
    # a run without devices or time has no shares
    service_s = service.devices * run.simulated_s - float(np.diff(service.gaps_s).sum()) or math.nan
    # the last interruptions may outlast the simulation
    left_s = run.simulated_s - handovers["time_s"]
    interruption_s = float(handovers["interruption_s"].clip(upper=left_s).sum())
    cuts = {word: split_outcome(word, f"{run.path}/devices.csv") for word in devices["outcome"].unique()}
    gone = [outcome for outcome, cut in cuts.items() if cut and cut.cause in GONE]
    failed = devices[devices["outcome"] != COMPLETED]
    energy_j = devices["energy_j"].sum()
    lost: dict[str, float] = {
        "broken": int(devices["outcome"].isin(gone).sum()),
        "wasted_bits": int(failed[["downlink_bits", "uplink_bits"]].to_numpy().sum()),
        "wasted_j": float(failed["energy_j"].sum()),
        "wasted_share": float(failed["energy_j"].sum() / energy_j) if energy_j else 0.0,
    }
    return {
        "variant": run.variant,
        "seed": run.seed,
        "handovers": len(handovers),
        "handovers_per_device_hour": len(handovers) / (service_s / 3600),
        "ping_pongs": int((handovers["detail"] == PING_PONG).sum()),
        "ping_pong_share": float((handovers["detail"] == PING_PONG).mean()),
        "time_of_stay_s": float(handovers["stay_s"].mean()),
        "interruption_s": interruption_s,
        "interruption_share": interruption_s / service_s,
        **(lost if whole else dict.fromkeys(lost, math.nan)),
    }


ROWS: dict[str, Quantity] = {
    "handovers": ("Handovers", "{:,.0f}", 1),
    "handovers_per_device_hour": ("Handovers per device and hour of service", "{:.1f}", 1),
    "ping_pong_share": (f"Ping-pong within {PING_PONG_S:g} s (%)", "{:.1f}", 100),
    "time_of_stay_s": ("Time of stay (s)", "{:.2f}", 1),
    "interruption_s": ("Interruption (s)", "{:,.2f}", 1),
    "interruption_share": ("Interrupted share of service (%)", "{:.3f}", 100),
    "broken": ("Broken participations", "{:,.0f}", 1),
    "wasted_bits": ("Wasted (Mbit)", "{:.2f}", 1e-6),
    "wasted_j": ("Wasted (J)", "{:.4g}", 1),
    "wasted_share": ("Wasted share of energy (%)", "{:.1f}", 100),
}


MOST_SERIES = 5  # more lines cannot be told apart
FEW = 40  # up to this many points of a line are marked


def network_figure(course: pd.DataFrame) -> Figure | None:
    """Draw the table of `over_time`, variants as lines with bands of one standard deviation; None without data.

    There is a panel of handovers if any occurred, and one of devices in service if their number changes.
    """
    names = list(dict.fromkeys(course["variant"]))[:MOST_SERIES]
    course = course[course["variant"].isin(names)]
    kinds = []
    if course["handovers_per_hour"].gt(0).any():
        kinds.append("handovers_per_hour")
    if course.groupby(["variant", "seed"])["in_service"].agg(np.ptp).gt(1e-9).any():
        kinds.append("in_service")
    if course["round_s"].notna().any():
        kinds.append("round_s")
    if not kinds:
        return None
    figure, axes = panels(len(kinds), 0.6 + 1.35 * len(kinds), sharex=True)
    unit, size = unit_for(course["time_s"], TIME_UNITS)
    styles = series_styles(names)
    for ax, kind in zip(axes, kinds, strict=True):
        label, scale = _label(kind, course)
        for name, style in styles.items():
            own = course[course["variant"] == name]
            _line(ax, own, kind, size, scale, style | {"label": name})
            if kind == "handovers_per_hour" and own["ping_pongs_per_hour"].gt(0).any():
                thin = style | {"linestyle": ":", "linewidth": 0.8, "marker": None, "label": None}
                _line(ax, own, "ping_pongs_per_hour", size, scale, thin)
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
        ax.margins(x=0)
    if kinds[0] == "handovers_per_hour" and course["ping_pongs_per_hour"].gt(0).any():
        axes[0].set_title(
            f"dotted: ping-pong within {PING_PONG_S:g} s", fontsize=SMALL - 1, color=SOFT, loc="right", pad=2
        )
    axes[-1].set_xlim(0, (course["time_s"].max() + course["time_s"].min()) / size)
    axes[-1].set_xlabel(f"simulated time ({unit})")
    figure.align_ylabels(axes)
    legend(figure, axes[0])
    return figure


def _label(kind: str, course: pd.DataFrame) -> tuple[str, float]:
    """Return an axis label with its unit, and the size of that unit."""
    if kind == "round_s":
        unit, size = unit_for(course["round_s"], TIME_UNITS)
        return f"round time ({unit})", size
    return {"handovers_per_hour": "handovers per hour", "in_service": "devices in service"}[kind], 1.0


def _line(ax: Axes, own: pd.DataFrame, kind: str, size: float, scale: float, style: dict) -> None:
    """Draw a variant's mean over seeds as a line, and the standard deviation as a band."""
    over_seeds = (own.groupby("time_s")[kind].agg(["mean", "std"]) / scale).dropna(subset="mean")
    x, mean, std = over_seeds.index / size, over_seeds["mean"], over_seeds["std"]
    mark = {"markersize": 2.4, "markeredgewidth": 0.4} if len(x) <= FEW else {"marker": None}
    ax.plot(x, mean, **{"linewidth": 1.1, "zorder": 4, **style, **mark})
    if std.notna().any():
        look = {"color": style["color"], "alpha": 0.2, "linewidth": 0}
        ax.fill_between(x, np.maximum(mean - std, 0), mean + std, **look)
