"""Note handovers caused by the radio rather than by movement, and settings that make such handovers rarer."""

from collections.abc import Iterator

import numpy as np

from edgefl.channel.path_loss.umi import UMi
from edgefl.scenario.world import World

# no real network has more handovers per crossed border; below FEWEST_HANDOVERS, the ratio means nothing
MOST_HANDOVERS_A_BORDER, FEWEST_HANDOVERS = 3, 30
LARGEST_OFFSET_DB = 15.0  # scenarios with at least this a3_offset_db are not advised to raise it
UMI_APART_M = 200.0  # distance between UMi's sites: TR 38.901, Table 7.2-1


def more_handovers_than_borders(world: World, handovers: int, crossed: int) -> Iterator[str]:
    """Note handovers that are ping-pongs rather than the result of movement between cells."""
    if handovers >= FEWEST_HANDOVERS and handovers > MOST_HANDOVERS_A_BORDER * crossed:
        each = f"{handovers / crossed:.1f} for each of {crossed:,}" if crossed else "although there were no"
        *rest, last = _remedies(world) or [""]
        remedy = f". For fewer handovers, set {', '.join(rest)}{' or ' if rest else ''}{last}" if last else ""
        yield (
            f"handovers: {handovers:,}, {each} crossings of borders between cells; real networks have 1.5 to 2.4 per"
            f" crossing (drive tests of uccmisl/5Gdataset){remedy}"
        )


def _remedies(world: World) -> list[str]:
    """Return settings that the scenario lacks and that reduce handovers, the most effective first.

    docs/network.md describes the effect of each setting.
    """
    radio, rules, propagation = world.extent.radio, world.handover, world.extent.radio.propagation
    shadowed = propagation.shadowing_std_db != 0
    by_place = propagation.line_of_sight in ("probabilistic", "soft")
    lacking = {
        "radio.path_loss: uma (umi is meant for sites 200 m apart)": isinstance(radio.path_loss, UMi)
        and _sites_apart_m(world.sites_m) > UMI_APART_M,
        "layout.sectors: 3": not world.layout.bearings_deg,
        "radio.propagation.line_of_sight: soft": propagation.line_of_sight == "probabilistic",
        "radio.propagation.site_correlation: 0.5": shadowed and propagation.site_correlation < 0.5,
        "radio.propagation.los_site_correlation: 0.5": by_place and propagation.los_site_correlation < 0.5,
        "handover.time_to_trigger_s: 0.64": rules.time_to_trigger_s < 0.64,
        "handover.l3_filter_k: 8": rules.l3_filter_k < 8,
        f"handover.a3_offset_db above {rules.a3_offset_db:g}": rules.a3_offset_db < LARGEST_OFFSET_DB,
    }
    return [remedy for remedy, lacks in lacking.items() if lacks]


def _sites_apart_m(sites_m: np.ndarray) -> float:
    """Return the mean distance from a site to its nearest neighbour; 0 for a single site."""
    if len(sites_m) == 1:
        return 0.0
    apart_m = np.hypot(*(sites_m[:, None] - sites_m).T)
    np.fill_diagonal(apart_m, np.inf)
    return float(apart_m.min(axis=0).mean())
