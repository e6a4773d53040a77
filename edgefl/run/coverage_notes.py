"""Write notes on devices without a link, before a run and at its end."""

from collections.abc import Iterator

from edgefl.engine.air.coverage import remedies
from edgefl.engine.cells.network import Network
from edgefl.run.counts import MATTERS, Counts
from edgefl.scenario.world import World


def at_start(world: World, network: Network) -> Iterator[str]:
    """Note that all moving devices are out of coverage when the run begins; other checks look at still devices."""
    if network.still or any(network.present(cell) for cell in world.served):
        return
    if out := sum(len(network.out_of_coverage(cell) or ()) for cell in world.served):
        reach = remedies(world.layout, world.fleet)
        yield (
            f"when the run begins, no device has a link: {out:,} {'are' if out > 1 else 'is'} in cells with a server,"
            f" but out of coverage; {reach} reach more devices"
        )


def without_coverage(counts: Counts, devices: int, reach: str) -> Iterator[str]:
    """Note that a tenth of a cell's devices or more have no link, and that rounds waited until timers expired.

    Args:
        devices: how many devices the run has.
        reach: what gives more devices a link.
    """
    rounds, out = counts.rounds.total(), counts.uncovered
    present = devices / max(1, len(counts.rounds))
    share = f"{100 * counts.timers / max(1, rounds):.1f} %"
    waited = f"{counts.timers:,} of {rounds:,} rounds ({share})" if rounds else ""
    if any(out) and (counts.timers or sum(out) >= MATTERS * present * len(out)):
        mean = sum(out) / len(out)
        number = f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}"
        who = f"on average {number} device{'s' * (number != '1')} of a cell when a round began"
        if mean < 1:
            who = f"a device of a cell when {sum(map(bool, out)):,} of {len(out):,} rounds began"
        ended = (
            f", and {waited} ended with a timeout (radio.monitoring.t310_s, t311_s)" if counts.timers else ""
        )
        yield (
            f"out of coverage: {who}, at most {max(out):,}; no round selects or waits for them{ended};"
            f" {reach} reach more devices"
        )
    elif counts.timers:
        yield (
            f"{waited} waited for a device whose link had failed, until radio.monitoring.t310_s and t311_s expired"
            + (
                ""
                if out
                else "; with radio.monitoring.coverage_margin_db, devices without a link are not selected"
            )
        )
