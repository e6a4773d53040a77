"""Show the figures of benchmarks as tables in the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table


def radio(figures: dict[str, Any]) -> Table:
    """Show device-slots per second of each variant, and edgefl's rate relative to it."""
    table = _table(
        "One core, 100 devices, Rayleigh fading at 10 m/s", "device-slots/s", "edgefl is faster by"
    )
    for name, rate in figures["slots"].items():
        ratio = figures["slot_ratio"].get(name)
        table.add_row(name, f"{rate:.3g}", f"{ratio:.1f}x" if ratio else "")
    table.add_row(
        "20,000-slot transfers by renewal", "", f"{figures['renewal_ratio']:,.0f}x over slot by slot"
    )
    for name, ratio in figures["presets"]["ratio"].items():
        wall = f"{figures['presets']['wall_s'][name]:.2f} s"
        table.add_row(f"whole run in seven cells, {name}", wall, f"{ratio:.2f}x the journal's time")
    return table


def network(figures: dict[str, Any]) -> Table:
    """Show the network's figures, one row per number of devices."""
    rival = figures["rival"]
    table = _filled(
        f"{figures['cells']} cells, {figures['simulated_s']:g} s simulated, measured every 0.2 s",
        figures["rows"],
        {
            "devices": "{devices:,}",
            "wall s": "{wall_s:.1f}",
            "ms per\ndevice-h": "{wall_ms_per_device_hour:.1f}",
            "rival\ntakes": "{ratio:.0f}x",
            "MB": "{peak_memory_mb:.0f}",
            "handovers": "{handovers:,}",
            "transfers": "{transfers:,}",
            "of them\nbroken": "{transfers_broken:,}",
        },
    )
    each = f"{rival['wall_ms_per_device_hour']:,.0f} ms per device-hour, without transfers"
    table.caption = f"Rival: {rival['name']}, {each}"
    return table


def deciders(figures: dict[str, Any]) -> Table:
    """Show the time per decision of each decider, the time to compute its inputs, and the rival's time."""
    rival = figures["rival"]
    table = _table(
        f"CPU time to choose {figures['taken']} of {figures['candidates']:,} devices", "ms for a decision"
    )
    for name, ms in figures["ms"].items():
        table.add_row(name, f"{ms:.2f}")
    table.add_row("to compute their inputs", f"{figures['told_ms']:.2f}")
    table.caption = (
        f"Rival: {rival['name']}\none least_energy: {rival['ours_ms']:.2g} ms\n"
        f"the rival's: {rival['ms']:.3g} ms, {rival['ratio']:.0f}x\nits joules: {rival['above']:+.0e}"
    )
    return table


def training(figures: dict[str, Any]) -> Group:
    """Show a table per task: rounds per second, and speed relative to the PyTorch loop and the least time."""
    tables = []
    peak = figures.get("matrix_peak_flops")
    columns = ["rounds/s", "over\nthe loop", *([f"of {peak / 1e12:.3g} TFLOP/s in bf16"] if peak else [])]
    for task in figures["tasks"]:
        floor = task.get("floor")
        table = _table(task["title"], *columns, *(["over\nthe floor"] if floor else []))
        if floor:
            least = ", ".join(
                f"{1000 * s:.3g} ms with {count} thread{'s' * (count > 1)}"
                for count, s in floor["seconds"].items()
            )
            table.caption = (
                f"Floor of a round: {floor['flops'] / 1e9:.3g} GFLOP, {floor['bytes'] / 1e6:.3g} MB,"
                f" {floor['numbers']:,} random numbers; at this machine's best speeds {least}"
            )
        for name, rate in task["rounds_per_s"].items():
            ratio = task["ratio"].get(name)
            cells = [name, f"{rate:.3g}", f"{ratio:.1f}x" if ratio else ""]
            if peak:
                cells.append(f"{100 * task['peak_share'][name]:.2g} %")
            if floor:
                over = task["over_floor"].get(name)
                cells.append(f"{over:.1f}x" if over else "")
            table.add_row(*cells)
        tables.append(table)
    return Group(*tables)


def whole(figures: dict[str, Any]) -> Group:
    """Show wall and CPU time per round of whole runs and their rivals, and how a run's time is divided."""
    table = _table(figures["title"], "wall, ms", "CPU, ms", "over\nedgefl")
    for name, ms in figures["wall_ms"].items():
        ratio = figures["ratio"].get(name)
        table.add_row(name, f"{ms:.3g}", f"{figures['cpu_ms'][name]:.3g}", f"{ratio:.1f}x" if ratio else "")
    table.caption = f"The rivals have no radio. Load of the machine at the end: {figures['load']:.1f}"
    parts = _table("A round with one thread", "ms")
    for name, ms in figures["parts"].items():
        parts.add_row(name, f"{ms:.1f}")
    return Group(table, parts)


def memory(figures: dict[str, Any]) -> Table:
    """Show peak memory, with a row per algorithm."""
    batches = f"{figures['rounds']} rounds of {figures['steps']} x {figures['batch']}"
    rows = [{**row, "paper": f"{row['paper_gb']:.0f}" if row["paper_gb"] else ""} for row in figures["rows"]]
    cells = {
        "": "{algorithm}",
        "peak GB": "{peak_memory_gb:.1f}",
        "models GB": "{models_gb:.1f}",
        "paper GB": "{paper}",
        "wall s": "{wall_s:.0f}",
    }
    return _filled(f"ResNet-18, {figures['devices']} devices, {batches}", rows, cells)


def run(figures: dict[str, Any]) -> Table:
    """Show the share of each part in the wall time."""
    table = _table(
        f"{figures['scenario']}: {figures['rounds']:,} rounds in {figures['wall_s']:.1f} s", "share", "s"
    )
    for name, share in figures["shares"].items():
        table.add_row(name, f"{100 * share:.1f} %", f"{share * figures['wall_s']:.2f}")
    table.min_width = 60
    table.caption = f"Time in SimPy without training and evaluation: {100 * figures['other']:.1f} %"
    return table


def _filled(title: str, rows: Sequence[Mapping[str, Any]], cells: Mapping[str, str]) -> Table:
    """Make a table from rows; cells: heading -> function that formats a row's figures."""
    corner, *columns = cells
    table = _table(title, *columns, corner=corner)
    for row in rows:
        table.add_row(*(cell.format(**row) for cell in cells.values()))
    return table


def _table(title: str, *columns: str, corner: str = "") -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(corner, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table
