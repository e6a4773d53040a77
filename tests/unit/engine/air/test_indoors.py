"""Compare penetration loss with hand derivations, from the walls' materials to the slot in which transfers end."""

import math

import numpy as np
import pytest

from edgefl.channel.path_loss.umi import UMi
from edgefl.engine.air.indoors import Coats, Indoors
from edgefl.engine.records import DeviceRound
from edgefl.mobility._draws import UniformDraws
from edgefl.rng import Streams
from edgefl.testing import Scripted, SmallWorld, small_world

SLOT_S, SERVER_W, DEVICE_W = 0.5e-3, 10 ** (43 / 10) / 1000, 10 ** (23 / 10) / 1000
NOISE_W = 10 ** ((-174 - 30) / 10) * 10e6
PLACE_M, DEPTH_M, SEED = (60.0, 30.0), 25.0, 7  # buildings of UMi are 25 m deep
BITS = 20_000_000
SIGMAS = 4
# 38.901, Table 7.4.3-1 at 3.5 GHz: plain glass 2 + 0.2 f, coated glass 23 + 0.3 f, concrete 5 + 4 f
GLASS_DB = {"low_loss": 2.7, "high_loss": 24.05}
CONCRETE_DB = 19.0
# 38.901, Table 7.4.3-2: share of glass, and the standard deviation
GLASS = {"low_loss": (0.3, 4.4), "high_loss": (0.7, 6.5)}


def world(share: float, walls: str) -> SmallWorld:
    return small_world(
        [PLACE_M],
        learner=Scripted(work=(1, 0, BITS, BITS)),
        devices={"indoor_share": share, "coated_share": float(walls == "high_loss")},
        seed=SEED,
    ).run()


def wall_db(walls: str) -> float:
    glass, _ = GLASS[walls]
    through = glass * 10 ** (-GLASS_DB[walls] / 10) + (1 - glass) * 10 ** (-CONCRETE_DB / 10)
    return 5 - 10 * math.log10(through)


def loss_db(walls: str) -> float:
    """Return the sum of wall loss, indoor loss and normal term in the square 3rd to the east and 2nd to the north."""
    number = ((2**20 + 2) * 2**21 + 2**20 + 1) * 5
    drawn = UniformDraws(Streams(SEED), 1, ("indoors",)).uniform(np.array([0]), np.array([number]), 5)[:, 0]
    inside_m = DEPTH_M * min(drawn[1], drawn[2])
    normal = math.sqrt(-2 * math.log(drawn[3])) * math.cos(2 * math.pi * drawn[4])
    return float(wall_db(walls) + 0.5 * inside_m + GLASS[walls][1] * normal)


def slots(small: SmallWorld, power_w: float, extra_db: float) -> int:
    h2 = float(small.simulation.radio.fading(0, 0).power(0, 1)[0])
    path_db = float(UMi().path_loss_db(math.hypot(*PLACE_M), carrier_hz=3.5e9)) + extra_db
    rate = math.log2(1 + power_w * 10 ** (-path_db / 10) * h2 / NOISE_W)
    return math.ceil(BITS / (10e6 * SLOT_S * rate))


@pytest.mark.parametrize("walls", ["low_loss", "high_loss"])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_transfer_from_indoors_ends_in_the_slot_that_its_walls_say(walls: str, share: float) -> None:
    small = world(share, walls)
    (row,) = small.rows.of[DeviceRound]
    extra_db = share * loss_db(walls)
    for power_w, start_s, end_s in (
        (SERVER_W, row.downlink_start_s, row.downlink_end_s),
        (DEVICE_W, row.uplink_start_s, row.uplink_end_s),
    ):
        expected = slots(small, power_w, extra_db)
        assert (end_s or 0.0) - (start_s or 0.0) == pytest.approx(expected * SLOT_S, abs=1e-9)


def test_walls_of_coated_glass_take_more_and_time_follows() -> None:
    """5 - 10 lg(0.3 x 0.537 + 0.7 x 0.01259) = 12.70 dB, and 5 - 10 lg(0.7 x 0.003936 + 0.3 x 0.01259) = 26.85 dB."""
    assert wall_db("low_loss") == pytest.approx(12.70, abs=0.01)
    assert wall_db("high_loss") == pytest.approx(26.85, abs=0.01)
    ends = [world(share, walls).rows.of[DeviceRound][0].uplink_end_s for share, walls in LOSSES]
    assert ends == sorted(ends)
    assert ends[-1] > 2 * ends[0]


LOSSES = ((0.0, "low_loss"), (1.0, "low_loss"), (1.0, "high_loss"))


def test_a_device_has_the_loss_of_the_square_where_it_is_whatever_was_asked_before() -> None:
    """The cached loss of a square serves that square and that device only, even for several places in one call."""
    ids = np.array([0, 1, 2])
    here_m, there_m = (
        np.array([[60.0, 30.0], [-5.0, 80.0], [3.0, 3.0]]),
        np.array([[60.0, 55.0], [-5.0, 80.0], [28.0, 3.0]]),
    )
    of_here, of_there = (walls().loss_db(positions_m, ids) for positions_m in (here_m, there_m))
    assert (of_here != of_there).tolist() == [True, False, True]
    subject = walls()
    for _ in range(2):
        assert subject.loss_db(here_m, ids).tolist() == of_here.tolist()
        assert subject.loss_db(there_m, ids).tolist() == of_there.tolist()
    # a map reads one device at several places in one call
    both = subject.loss_db(np.array([here_m[0], there_m[0], here_m[0]]), np.zeros(3, int))
    assert both.tolist() == [of_here[0], of_there[0], of_here[0]]
    assert subject.loss_db(there_m[:1], ids[:1]).tolist() == of_there[:1].tolist()


def walls(count: int = 3, share: float = 1.0, coats: Coats | None = None) -> Indoors:
    draws = UniformDraws(Streams(SEED), count, ("indoors",))
    return Indoors(np.full(count, share), 3.5e9, DEPTH_M, draws, coats)


def test_who_is_indoors_has_the_loss_that_all_would_have() -> None:
    """In 38.901, 7.4.3.1, being indoors is independent of the indoor distance (25 m / 3 on average) and of N."""
    count, share = 4000, 0.4
    ids, places_m = np.arange(count), np.full((count, 2), 60.0)
    some, everyone = (walls(count, of).loss_db(places_m, ids) for of in (share, 1.0))
    indoors = some != 0.0
    assert indoors.mean() == pytest.approx(share, abs=SIGMAS * math.sqrt(share * (1 - share) / count))
    assert some[indoors].tolist() == everyone[indoors].tolist()
    # the minimum of two uniform numbers has mean 1/3 and variance 1/18
    mean_db, std_db = wall_db("low_loss") + 0.5 * DEPTH_M / 3, math.hypot(4.4, 0.5 * DEPTH_M / math.sqrt(18))
    for among in (indoors, ~indoors):
        error_db = SIGMAS * std_db / math.sqrt(among.sum())
        assert everyone[among].mean() == pytest.approx(mean_db, abs=error_db)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_share_of_the_buildings_is_coated_and_stays_so(share: float) -> None:
    """A coated building keeps its indoor distance and normal draw: its loss is 26.85 +- 6.5 dB, not 12.70 +- 4.4."""
    count = 4000
    ids, places_m = np.arange(count), np.full((count, 2), 60.0)
    coats = Coats(np.full(count, share), 3.5e9, UniformDraws(Streams(SEED), count, ("coated",)))
    some, plain = walls(count, coats=coats), walls(count)
    loss_db, plain_db = some.loss_db(places_m, ids), plain.loss_db(places_m, ids)
    numbers = ((2**20 + 2) * 2**21 + 2**20 + 2) * np.ones(count, dtype=np.int64)
    drawn = UniformDraws(Streams(SEED), count, ("indoors",)).uniform(ids, numbers * 5, 5)
    normals = np.sqrt(-2 * np.log(drawn[3])) * np.cos(2 * np.pi * drawn[4])
    coated_db = plain_db + (wall_db("high_loss") - wall_db("low_loss")) + (6.5 - 4.4) * normals
    coated = np.abs(loss_db - plain_db) > 1e-9
    assert loss_db == pytest.approx(np.where(coated, coated_db, plain_db), abs=1e-9)
    assert coated.mean() == pytest.approx(share, abs=SIGMAS * math.sqrt(share * (1 - share) / count))
    # buildings elsewhere are coated independently, and on return a building is as before
    elsewhere_m = np.full((count, 2), 160.0)
    other = np.abs(some.loss_db(elsewhere_m, ids) - plain.loss_db(elsewhere_m, ids)) > 1e-9
    both = share**2
    assert (coated & other).mean() == pytest.approx(both, abs=SIGMAS * math.sqrt(both * (1 - both) / count))
    assert some.loss_db(places_m, ids).tolist() == loss_db.tolist()


def test_coats_leave_who_is_indoors_as_it_is() -> None:
    """Coating has its own random stream: the share of coated buildings does not change which devices are indoors."""
    count, places_m = 500, np.full((500, 2), 60.0)
    coats = Coats(np.full(count, 0.5), 3.5e9, UniformDraws(Streams(SEED), count, ("coated",)))
    inside = [
        one.loss_db(places_m, np.arange(count)) != 0 for one in (walls(count, 0.4), walls(count, 0.4, coats))
    ]
    assert inside[0].tolist() == inside[1].tolist()
