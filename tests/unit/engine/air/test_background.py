"""Test background traffic: hand-derived slots of each transfer with and without priority, and refused settings."""

from typing import Any

import numpy as np
import pytest
import simpy

from edgefl.channel.carrier import Carrier
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.schedulers.learning_first import LearningFirst
from edgefl.channel.schedulers.round_robin import RoundRobin
from edgefl.channel.shared_band import SharedBand
from edgefl.channel.units import dbm_to_watt
from edgefl.engine.air.background_users import BackgroundUsers
from edgefl.engine.air.band import BandInUse
from edgefl.engine.backgrounds import Background
from edgefl.engine.backgrounds.load import Load
from edgefl.engine.clock import Clock
from edgefl.engine.records import DeviceRound, LedgerRow, Round
from edgefl.scenario.world import World
from edgefl.testing import Scripted, SmallWorld, small_world
from edgefl.testing.cell import within
from tests.refusals import refused_at
from tests.unit.engine.air.worlds import Steady, world_of

SHARED = {"preset": "journal", "sharing": "dynamic", "budget": {"power_over_share": "per_resource_block"}}


@pytest.mark.parametrize(
    ("scheduler", "file_ends", "learning_ends"),
    [
        # the file is alone in slots 0 and 1; then both alternate: the file has slots 2, 4, 6, the transfer 3, 5, 7, 8
        (RoundRobin(), 7, 9),
        # the learning transfer has slots 2 to 5, and the file has all other slots
        (LearningFirst(), 9, 6),
    ],
)
def test_a_file_of_5_slots_and_a_transfer_of_4(scheduler: Any, file_ends: int, learning_ends: int) -> None:
    """A file of 5 slots, and a transfer of 4 slots that arrives in slot 2, each carry log2(1 + 1) = 1 bit/s/Hz."""
    band = SharedBand(scheduler, Carrier(1e6, 1e-3, power="per_resource_block"))
    link: dict[str, Any] = {"snr_whole_band": 1.0, "fading": Steady()}
    band.add("file", 5e3, slot=0, background=True, **link)
    band.add("learning", 4e3, slot=2, **link)
    ends = {}
    while (due := band.next_end()) is not None:
        for name in band.settle(due[0]):
            ends[name] = due[0]
    assert ends == {"file": file_ends, "learning": learning_ends}


def world(scheduler: str, background: dict[str, Any] | None) -> SmallWorld:
    return small_world(
        [60.0],
        learner=Scripted(work=(1, 1, 1_000_000, 3_000_000)),
        policy={"name": "schedule", "count": 1, "rounds": 4},
        doppler_speed_m_s=10.0,
        radio={**SHARED, "scheduler": scheduler, "background": background},
    ).run()


def parts(scheduler: str, background: dict[str, Any] | None) -> list[DeviceRound]:
    return world(scheduler, background).rows.of[DeviceRound]


BUSY = {"uplink_load": 0.8, "downlink_load": 0.5, "file_bits": 1_000_000}


def test_with_priority_a_device_does_not_notice_the_others() -> None:
    """With priority, background traffic changes no times, bits or joules of a device; otherwise the device waits."""
    assert parts("learning_first", BUSY) == parts("learning_first", None) == parts("proportional_fair", None)
    with_others, alone = parts("round_robin", BUSY), parts("round_robin", None)
    took = [[row.uplink_end_s - row.uplink_start_s for row in rows] for rows in (with_others, alone)]
    assert sum(took[0]) > 1.3 * sum(took[1])


def test_no_load_is_no_traffic() -> None:
    assert parts("round_robin", {"file_bits": 1000}) == parts("round_robin", None)


def test_users_are_in_their_cell() -> None:
    """For each user its own cell is the strongest, and within 120 m, as the hexagon's corner is at 115 m."""
    hexagons = {"rings": 1, "isd_m": 200.0}
    world = cells({"users": 60}, layout=hexagons, propagation={"shadowing": "spatial"})
    noise_w = 10 ** ((-174 - 30) / 10) * world.scenario.radio.bandwidth_hz
    for cell in (0, 3):
        snr = users(world).links(cell).snr
        assert snr["downlink"].shape == snr["uplink"].shape == (60,)
        loss_db = 10 * np.log10(dbm_to_watt(43.0) / noise_w / snr["downlink"])
        assert loss_db.max() <= UMi().path_loss_db(200 / np.sqrt(3), carrier_hz=3.5e9)
        assert loss_db.min() < UMi().path_loss_db(60.0, carrier_hz=3.5e9)


def users(world: World) -> BackgroundUsers:
    return BackgroundUsers(world.scenario.devices, world.gains, world.extent, world.streams)


def cells(
    background: dict[str, Any],
    devices: dict[str, Any] | None = None,
    layout: dict[str, Any] | None = None,
    **radio: Any,
) -> World:
    radio = within({**SHARED, "propagation": {"shadowing_std_db": 0.0}}, radio)
    radio["background"] = {"users": 400, **background}
    return world_of(devices={"count": 2, **(devices or {})}, layout=layout or {}, radio=radio)


def test_users_have_a_power_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SNR of background users does not depend on the power of the learning devices or of their classes."""
    classes = {"a": {"share": 0.5, "transmit_power_dbm": -10.0}, "b": {"share": 0.5}}
    phones, sensors = cells({}), cells({}, {"transmit_power_dbm": 7.0, "classes": classes})
    snr, same = (users(world).links(0).snr for world in (phones, sensors))
    monkeypatch.setattr(Background, "transmit_power_dbm", 13.0)
    less = users(cells({})).links(0).snr
    for direction, ratio in (("uplink", 10.0), ("downlink", 1.0)):
        assert np.array_equal(snr[direction], same[direction])  # type: ignore[index]
        assert snr[direction] / less[direction] == pytest.approx(ratio)  # type: ignore[index]


def test_power_control_holds_for_users_too() -> None:
    """With alpha = 1, all users below their maximum power arrive at the site with the same power."""
    snr = users(cells({}, budget={"uplink_p0_dbm": -100.0, "uplink_alpha": 1.0})).links(0).snr["uplink"]
    assert snr == pytest.approx(snr[0])


def test_power_control_limits_users_on_each_resource_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whose power suffices for all blocks has the same power on a block when it shares them with a device."""
    world = cells({"users": 10, "uplink_load": 0.9}, preset="nr", budget={"uplink_p0_dbm": -100.0})
    links = users(world).links(0)
    snr, most = links.snr["uplink"], links.most["uplink"]
    assert (most >= snr * (1 - 1e-12)).all()
    assert np.isclose(most, snr).any(), "some users are below their maximum power"
    assert (most > 2 * snr).any(), "others may put their power on fewer blocks"
    assert np.isinf(links.most["downlink"]).all()

    begun: list[dict[str, Any]] = []

    def begin(band: BandInUse, *_: Any, **how: Any) -> simpy.Event:
        begun.append(how)
        return simpy.Event(band.env)

    monkeypatch.setattr(BandInUse, "begin", begin)
    radio = world.radio(Clock())
    for process in world.background(radio):
        radio.env.process(process)
    radio.env.run(until=5.0)
    allowed = dict(zip(snr.tolist(), most.tolist(), strict=True))
    assert {allowed[how["snr_whole_band"]] == how["most_snr"] for how in begun} == {True}


def test_users_are_indoors_as_often_as_devices() -> None:
    """As penetration loss is at least 10 dB, SNR shows which users are indoors; 0.1 is 4 standard errors."""
    outdoors = users(cells({})).links(0).snr["downlink"]
    snr = users(cells({}, {"indoor_share": 0.6})).links(0).snr["downlink"]
    assert np.mean(snr < outdoors / 3) == pytest.approx(0.6, abs=4 * np.sqrt(0.25 / 400))


def test_what_users_spend_is_in_no_table() -> None:
    """With priority, background users change no device's energy and no site's energy in the tables."""
    alone, beside = (world("learning_first", background) for background in (None, BUSY))
    for row in (Round, LedgerRow):
        assert alone.rows.of[row] == beside.rows.of[row]
    assert [row.energy_server_j for row in beside.rows.of[Round]] != [0.0] * 4


# ---- traffic in bit/s, and users at given distances


def test_users_are_at_the_distances_given() -> None:
    """Distances are uniform from 20 to 80 m, with a standard deviation of 60 m / sqrt(12)."""
    world = cells({"distance_m": [20.0, 80.0]})
    places_m = users(world)._drawn_m(0, np.random.default_rng(3))
    distance_m = np.hypot(*places_m.T)
    assert 20.0 <= distance_m.min() < 25.0 < 75.0 < distance_m.max() <= 80.0
    assert distance_m.mean() == pytest.approx(50.0, abs=4 * 60.0 / np.sqrt(12 * 400))
    noise_w = 10 ** ((-174 - 30) / 10) * world.scenario.radio.bandwidth_hz
    loss_db = 10 * np.log10(dbm_to_watt(43.0) / noise_w / users(world).links(0).snr["downlink"])
    assert loss_db.max() <= UMi().path_loss_db(80.0, carrier_hz=3.5e9) + 1e-9


def test_users_of_several_cells_are_around_their_own_site() -> None:
    hexagons = {"rings": 1, "isd_m": 200.0}
    world = cells({"distance_m": [30.0, 30.0]}, layout=hexagons, propagation={"shadowing": "spatial"})
    places_m = users(world)._drawn_m(3, np.random.default_rng(3))
    assert np.hypot(*(places_m - world.extent.layout.sites_m[3]).T) == pytest.approx(30.0)


def test_users_beyond_the_cell_are_refused() -> None:
    with refused_at("radio.background.distance_m", "300 m", "250 m"):
        users(cells({"distance_m": [20.0, 300.0]})).links(0)
    with refused_at("distance_m", "from 80 to 20 m"):
        Load(distance_m=(80.0, 20.0))


def test_traffic_in_bit_per_second_brings_its_bits() -> None:
    """4 Mbit/s in files of 50 kbit are 80 arrivals/s: in 5 s the Poisson mean is 400, its standard deviation 20."""
    radio = {**SHARED, "scheduler": "round_robin", "background": {"uplink_bps": 4e6, "file_bits": 50_000}}
    small = small_world(
        [60.0], policy={"name": "schedule", "count": 1, "rounds": 1}, radio=radio, rules={"server_s": 5.0}
    )
    come = []
    begin = BandInUse.begin

    def count(self: BandInUse, id_: int, payload_bits: float, **how: Any) -> Any:
        come.append((id_, payload_bits))
        return begin(self, id_, payload_bits, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BandInUse, "begin", count)
        small.run()
    files = [bits for id_, bits in come if id_ < 0]
    assert set(files) == {50_000}
    assert len(files) == pytest.approx(400, abs=4 * 20)


def test_traffic_that_the_band_cannot_carry_is_refused() -> None:
    with refused_at("radio.background.uplink_bps", "1e+10 bit/s", "lower it"):
        world("round_robin", {"uplink_bps": 1e10})
    with refused_at("", "either uplink_load or uplink_bps"):
        Load(uplink_load=0.1, uplink_bps=1e6)
