"""Test that errors of the channel package name the wrong value, in every function that receives it."""
# ruff: noqa: F401 - the table calls what is imported

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from edgefl.channel.carrier import Carrier
from edgefl.channel.energy import compute_energy_j, compute_time_s
from edgefl.channel.fading import LinkFading, slot_correlation
from edgefl.channel.gaussian_fields import Common, GaussianFields
from edgefl.channel.geometry import poisson_count, sample_ring
from edgefl.channel.layout import Wraparound, hexagonal_sites
from edgefl.channel.many import slots_of_many
from edgefl.channel.many_links import power_of_many
from edgefl.channel.modulation import Steps
from edgefl.channel.path_loss.free_space import FreeSpace
from edgefl.channel.path_loss.inh import InH
from edgefl.channel.path_loss.uma import UMa
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.penetration import wall_loss_db
from edgefl.channel.rates import rate_moments
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.channel.schedulers.proportional_fair import ProportionalFair
from edgefl.channel.shadowing import draw_shadowing_db
from edgefl.channel.share import ergodic_rate, noise_w, spectral_efficiency
from edgefl.channel.shared_band import SharedBand
from edgefl.channel.tdd import Pattern, frame_of
from edgefl.channel.transfer import Flow
from edgefl.channel.units import linear_to_db
from tests.refusals import refused_at
from tests.unit.channel.test_large_scale import large_scale

RNG = np.random.default_rng(1)
LINK, STATIC = LinkFading(1, 0.9667), LinkFading(1, 1.0)


def carrier(**rules: Any) -> Carrier:
    return Carrier(**{"bandwidth_hz": 1e6, "slot_s": 0.5e-3, **rules})


def flow(**link: Any) -> Flow:
    return Flow(carrier(), **{"snr": 1.0, "fading": LINK, "first_slot": 0, **link})


def add(rules: dict[str, Any] | None = None, bits: float = 1.0, **link: Any) -> None:
    how = {"snr_whole_band": 1e9, "fading": STATIC, "slot": 0}
    SharedBand(EqualShare(), carrier(**rules or {})).add("a", bits, **how | link)


def many(**changes: Any) -> None:
    of_two = {"payload_bits": [1e5, 1e5], "share": 0.5, "snr": 1.0, "first_slot": 0, "fading": [LINK, LINK]}
    slots_of_many(carrier(), **of_two | changes)


def fields(**changes: Any) -> None:
    GaussianFields(**{"keys": [1], "correlation_m": 10.0, "area_radius_m": 50.0, "stream": 0} | changes)


# words that the message must contain | the call | values of x
REFUSED = """
from 10 to 5000 m | UMi().path_loss_db(x, carrier_hz=3.5e9) | 0.0; 9.99; 5000.1; nan; [100.0, 5.0]
from 10 to 5000 m | UMa().path_loss_db(x, carrier_hz=3.5e9) | 9.99; 5000.1; nan; -20.0
3D distance from 1 to 150 m, got 150.013 | InH().path_loss_db(150.0, carrier_hz=3.5e9)
from 1 to 150 m, got 0.5 | InH().path_loss_db(0.3, carrier_hz=3.5e9, bs_height_m=1.4, ut_height_m=1.0)
distance_2d_m | InH().path_loss_db(-5.0, carrier_hz=3.5e9)
distance_2d_m | x().los_probability(-1.0) | UMi; InH
carrier_hz | x().path_loss_db(50.0, carrier_hz=3.5) | UMi; UMa; InH
carrier_hz | FreeSpace().path_loss_db(10.0, carrier_hz=0.0)
ut_height_m | x().path_loss_db(100.0, carrier_hz=3.5e9, ut_height_m=1.0) | UMi; UMa
ut_height_m must be at most 13 m | UMa().path_loss_db(100.0, carrier_hz=3.5e9, ut_height_m=13.1)
bs_height_m | UMi().path_loss_db(100.0, carrier_hz=3.5e9, bs_height_m=24.1)
bs_height_m | UMa().path_loss_db(100.0, carrier_hz=3.5e9, bs_height_m=11.9)
apart | FreeSpace().path_loss_db(0.0, carrier_hz=3.5e9, bs_height_m=2.0, ut_height_m=2.0)
inner_radius_m | sample_ring(RNG, 1, inner_radius_m=x, outer_radius_m=10.0) | 250.0; 10.0; -1.0
inner_radius_m | poisson_count(RNG, density_per_km2=1.0, inner_radius_m=x, outer_radius_m=10.0) | 250.0; 10.0; -1.0
count | sample_ring(RNG, -1, inner_radius_m=1.0, outer_radius_m=2.0)
density_per_km2 | poisson_count(RNG, density_per_km2=-1.0, inner_radius_m=1.0, outer_radius_m=2.0)
rings | hexagonal_sites(-1, 100.0)
isd_m | hexagonal_sites(1, 0.0)
isd_m | Wraparound(1, inf)
std_db | draw_shadowing_db(RNG, 3, std_db=-4.0)
low_loss, high_loss | wall_loss_db(1e9, "paper")
128-bit | fields(keys=[2**128])
> 0 and finite | fields(**x) | {"correlation_m": 0.0}; {"area_radius_m": inf}
stream | fields(stream=-1)
share | Common(1, x) | 1.1; -0.1
128-bit | Common(-1, 0.5)
beyond area_radius_m 170 | large_scale().gain_db([[0.0, 0.0], x]) | [-120.0, 121.0]; [nan, 0.0]
positions_m | large_scale().gain_db([1.0, 2.0])
sites | large_scale().links_to([[0.0, 0.0]], x) | [7]; [-1]; [0, 1]
sites_m | large_scale(sites_m=[0.0, 1.0])
keys must be one per site, got 2 for 7 | large_scale(keys=[1, 2])
128-bit | large_scale(keys=[-1] * 7, shadowing_std_db=None)
area_radius_m | large_scale(area_radius_m=0.0)
line_of_sight | large_scale(line_of_sight="maybe")
shadowing_std_db | large_scale(shadowing_std_db=-4.0)
carrier_hz | large_scale(carrier_hz=3.5)
min_distance_m 5 to 270 m | large_scale(min_distance_m=5.0)
min_distance_m 300 must be less than 270 m | large_scale(min_distance_m=300.0)
FreeSpace | large_scale(model=FreeSpace(), shadowing_std_db=4.0)
speed_m_s | slot_correlation(x, carrier_hz=3.5e9, slot_s=0.5e-3) | -1.0; nan
carrier_hz | slot_correlation(1.0, carrier_hz=x, slot_s=0.5e-3) | 0.0; -1.0
slot_s | slot_correlation(1.0, carrier_hz=3.5e9, slot_s=0.0)
correlation | LinkFading(1, x) | 1.1; nan
block | LinkFading(1, 0.9, 1)
key | LinkFading(x, 0.9) | -1; 2**128
first_slot | LINK.gain(-1, 1)
count | LINK.power(0, -1)
stream | LINK.generator(0, -1)
first_slots | power_of_many([LINK], np.array([-1]), 3)
count | power_of_many([LINK], np.array([0]), 0)
positive | linear_to_db(x) | 0.0; -1.0; nan
noise_psd_w_hz | noise_w(0.0, 1e6)
bandwidth_hz | noise_w(4e-21, 0.0)
>= 0 | noise_w(4e-21, 1e6, **x) | {"noise_figure_db": -1.0}; {"interference_margin_db": [0.0, -1.0]}
snr | ergodic_rate([1.0, -1.0])
cap | spectral_efficiency(1.0, x) | 0.0; -1.0; nan
cap | spectral_efficiency([1.0], x) | 0.0; -1.0; nan
cap | ergodic_rate(1.0, x) | 0.0; -1.0; nan
cap | ergodic_rate([1.0], x) | 0.0; -1.0; nan
static | rate_moments(x, 1.0, carrier()) | 1.0; [1.0]
snr | rate_moments(x, 0.5, carrier()) | 0.0; [1.0, 0.0]
cap | rate_moments(1.0, 0.5, carrier(cap=-1.0))
smallest_part | Steps(smallest_part=0.0)
beta | ProportionalFair(beta=x) | -0.1; 1.0; nan; "x"
pattern | Pattern(x) | ""; "DDXU"; "dddsu"; "DL|UL"
special | Pattern("DDDSU", x) | "10:2"; "10:2:3"; "10:2:2:0"; "a:b:c"; "-1:13:2"; "10,2,2"; ""
uplink | Pattern(*x) | ("DDDD", "10:2:2"); ("DS", "12:2:0")
downlink | Pattern("U", "10:2:2")
direction | Pattern().weights("sidelink")
weights | frame_of(x) | (); (0.0, 0.0); (1.0, -0.1); (1.5,); (nan, 1.0)
bandwidth_hz and slot_s | carrier(**x) | {"bandwidth_hz": 0.0}; {"bandwidth_hz": nan}; {"slot_s": inf}
cap | carrier(cap=0.0)
power | carrier(power="half")
weights | carrier(weights=x) | (0.0, 0.0); (2.0,)
payload_bits | carrier().need(x) | -1.0; inf; nan
payload_bits | carrier().needs(np.array([1.0, x]), np.ones(2)) | -1.0; inf; nan
shares | carrier().needs(np.ones(2), np.array([1.0, 0.0]))
bandwidth_hz | carrier().part(0.0)
clock_hz | compute_time_s(1e6, 640, clock_hz=0.0, flops_per_cycle=8.0)
flops_per_cycle | compute_time_s(1e6, 640, clock_hz=1e9, flops_per_cycle=0.0)
work | compute_time_s(1e6, -1, clock_hz=1e9, flops_per_cycle=8.0)
capacitance | compute_energy_j(1e6, 640, capacitance=-1.0, clock_hz=1e9, flops_per_cycle=8.0)
payload_bits | flow().slots_exact(-1.0)
snr | flow(snr=0.0).slots_exact(1e6)
slots | flow().bits_carried(-1)
slots | flow(fidelity="renewal", direction="uplink").bits(-1, 1.0)
fidelity | flow(fidelity="exact", direction="uplink").slots(1.0)
direction | flow(fidelity="auto", direction="exact").slots(1.0)
payload_bits | many(payload_bits=[1e5, -1.0])
shares | many(share=[0.5, 0.0])
snr must be positive and finite for a transfer to end, got 0 | many(snr=[1.0, 0.0])
got nan | many(snr=[1.0, nan])
first_slots | many(first_slot=[3, -1])
fidelity | many(fidelity="exact")
direction | many(direction="up")
at snr 1e-12 | many(snr=[1.0, 1e-12])
200000000 slots | flow(snr=1e-12, fidelity=x, direction="uplink").slots(1e6) | "slot"; "renewal"
100 slots | flow().slots_exact(5e5, max_slots=100)
static | flow(fading=STATIC).slots_exact(5e8, max_slots=100)
payload_bits | add(bits=-1.0)
snr | add(snr_whole_band=0.0, fading=LINK)
neighbours | add(neighbours=x) | -1.0; inf
neighbours | add({"power": "per_resource_block"}, neighbours=1.0)
200000000 slots | add({"power": "per_resource_block", "cap": 1.0}, bits=3e8 * 500)
"""


def cases() -> list[tuple[str, str, Any]]:
    """Return the table's rows, one row for each value."""
    rows = [line.split(" | ") for line in REFUSED.strip().splitlines()]
    return [
        (noun, call, x) for noun, call, *values in rows for x in (values[0] if values else "0").split("; ")
    ]


@pytest.mark.parametrize(("noun", "call", "x"), cases())
def test_a_wrong_value_is_named(noun: str, call: str, x: str) -> None:
    with refused_at("", noun, kind=ValueError):
        eval(call, globals(), {"x": eval(x)})
