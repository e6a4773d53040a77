"""Compare segments and labels of the report's energy bars, and the table below, with hand-computed values."""

import re

from edgefl.analysis import load_runs
from edgefl.analysis.html.energy import energy
from tests.unit.analysis.conftest import write_run


def section(tmp_path, rows: list[dict]) -> str:  # type: ignore[no-untyped-def]
    path = write_run(tmp_path / "a", [{"session": 1, "round": 1}], [{"session": 1}], ledger=rows)
    return energy(load_runs(path))


def test_segments_are_shares_of_the_longest_bar(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """A phone uses 2 + (3 + 1) + 4 J plus 2 J while idle, a meter 4 J; the longest bar is the sum of 16 J."""
    phone = {"receive_j": 2.0, "transmit_j": 4.0, "circuit_j": 1.0, "compute_j": 4.0, "idle_j": 2.0}
    phone |= {"energy_j": 10.0, "total_j": 12.0, "class": "phone"}
    meter = {"transmit_j": 4.0, "energy_j": 4.0, "total_j": 4.0, "class": "<meter>"}
    text = section(tmp_path, [phone, meter])
    bars = re.findall(r'<dt>(.*?)</dt><dd><span class="bar" aria-hidden="true">(.*?)</span>', text)
    found = {label: re.findall(r"left:([\d.]+)%;width:([\d.]+)%", parts) for label, parts in bars}
    spans = {label: [(float(left), float(width)) for left, width in of] for label, of in found.items()}
    assert spans == {
        "all devices": [(0, 12.5), (12.5, 43.75), (56.25, 6.25), (62.5, 25), (87.5, 12.5)],
        "phone": [(0, 12.5), (12.5, 18.75), (31.25, 6.25), (37.5, 25), (62.5, 12.5)],
        "&lt;meter&gt;": [(0, 25)],
    }
    # a device uses 7 J; 13.968 J are 1 mAh at 3.88 V, and 69,840 J are a phone's battery, which lasts a day
    assert "14.0\u00a0J <small>0.501\u00a0mAh per device, 0.0100\u00a0% of a phone&#x27;s day</small>" in text
    assert (
        '<th scope="row">energy plus idle</th><td>16.0\u00a0J</td><td>12.0\u00a0J</td><td>4.00\u00a0J</td>'
        in text
    )
    assert "its own battery" not in text  # neither device has a battery
