"""Test that large-scale gain is a function of the position, and combines path loss, line of sight and shadowing."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from edgefl.channel.field_stack import FieldStack
from edgefl.channel.gaussian_fields import Common, GaussianFields
from edgefl.channel.large_scale import LargeScale
from edgefl.channel.layout import Wraparound, hexagonal_sites
from edgefl.channel.path_loss import PathLoss
from edgefl.channel.path_loss.free_space import FreeSpace
from edgefl.channel.path_loss.inh import InH
from edgefl.channel.path_loss.uma import UMa
from edgefl.channel.path_loss.umi import UMi

SEED = 3
ISD_M = 100.0
AREA_M = 170.0
KEYS = [2**127 + 97 * site for site in range(7)]
# error in double precision of sums of a few terms around 100 dB
DOUBLE_DB = 1e-9
# error in single precision, as LargeScale states
SINGLE_DB = 1e-3


def large_scale(**changes: Any) -> LargeScale:
    """Return seven UMi sites 100 m apart."""
    arguments: dict[str, Any] = {
        "sites_m": hexagonal_sites(1, ISD_M),
        "model": UMi(),
        "carrier_hz": 3.5e9,
        "bs_height_m": 10.0,
        "ut_height_m": 1.5,
        "min_distance_m": 10.0,
        "area_radius_m": AREA_M,
        "keys": KEYS,
    }
    return LargeScale(**arguments | changes)


def places(count: int, radius_m: float = AREA_M, seed: int = SEED) -> np.ndarray:
    """Return places [count, 2] uniformly distributed in the area."""
    rng = np.random.default_rng(seed)
    radius, angle = radius_m * np.sqrt(rng.random(count)), 2 * math.pi * rng.random(count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


SPATIAL = {"line_of_sight": "probabilistic", "shadowing_std_db": None}


def test_a_place_keeps_its_values_whatever_is_asked_with_it() -> None:
    positions = places(5000)
    whole = large_scale(**SPATIAL)
    gain_db, in_sight = whole.gain_db(positions), whole.line_of_sight(positions)
    # another object has the same values for other subsets of places, in a different order
    again = large_scale(**SPATIAL)
    order = np.random.default_rng(SEED).permutation(5000)[:700]
    np.testing.assert_array_equal(again.gain_db(positions[order]), gain_db[order])
    np.testing.assert_array_equal(again.line_of_sight(positions[order]), in_sight[order])
    for i in order[:20]:
        np.testing.assert_array_equal(again.gain_db(positions[i : i + 1])[0], gain_db[i])
        for site in range(7):
            alone = again.links_to(positions[i : i + 1], [site])[0]
            together = again.links_to(positions, np.full(5000, site))[0]
            assert alone[0] == together[i]
            assert alone[0] == pytest.approx(gain_db[i, site], abs=SINGLE_DB)


@pytest.mark.parametrize(
    ("model", "heights", "area_m"),
    [
        (UMi(), (10.0, 1.5), AREA_M),
        (UMa(), (25.0, 1.5), AREA_M),
        (InH(), (3.0, 1.0), 40.0),
        (FreeSpace(), (10.0, 1.5), AREA_M),
    ],
)
@pytest.mark.parametrize("state", ["always", "never"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_without_shadowing_gain_is_minus_path_loss(
    model: PathLoss, heights: tuple[float, float], area_m: float, state: str, wrapped: bool
) -> None:
    radio = {"carrier_hz": 3.5e9, "bs_height_m": heights[0], "ut_height_m": heights[1]}
    # sites are 60 m apart, as InH ends at 150 m
    sites_m, wraparound = hexagonal_sites(1, 60.0), Wraparound(1, 60.0) if wrapped else None
    subject = large_scale(
        sites_m=sites_m,
        model=model,
        area_radius_m=area_m,
        line_of_sight=state,
        wraparound=wraparound,
        **radio,
    )
    positions, sites = places(2000, area_m), np.random.default_rng(SEED).integers(7, size=2000)
    displacement = positions - sites_m[sites]
    if wraparound:
        displacement = wraparound.displacement_m(positions, sites_m)[np.arange(2000), sites]
    distance = np.linalg.norm(displacement, axis=1)
    np.testing.assert_allclose(subject.links_to(positions, sites)[1], distance, rtol=0, atol=1e-9)
    expected = -model.path_loss_db(np.maximum(distance, 10.0), line_of_sight=state == "always", **radio)
    np.testing.assert_allclose(subject.links_to(positions, sites)[0], expected, rtol=0, atol=DOUBLE_DB)
    measured = subject.gain_db(positions)
    assert measured.shape == (2000, 7)
    assert measured.dtype == np.float32
    np.testing.assert_allclose(measured[np.arange(2000), sites], expected, rtol=0, atol=SINGLE_DB)


@pytest.mark.parametrize(("state", "correlation_m", "std_db"), [("always", 10.0, 4.0), ("never", 13.0, 7.82)])
def test_shadowing_adds_to_the_path_loss(state: str, correlation_m: float, std_db: float) -> None:
    positions, sites = places(2000), np.random.default_rng(SEED).integers(7, size=2000)
    bare, shadowed, other_std = (
        large_scale(line_of_sight=state, **options).links_to(positions, sites)[0]
        for options in ({"shadowing_std_db": 0.0}, {"shadowing_std_db": None}, {"shadowing_std_db": 1.0})
    )
    # the field has the site's key, and a stream for each state
    field = GaussianFields(
        keys=KEYS, correlation_m=correlation_m, area_radius_m=AREA_M, stream=0 if state == "always" else 1
    )
    normal = FieldStack([field]).at(positions)[0][np.arange(2000), sites]
    # the field is in single precision, in which 4 standard deviations of 8 dB round by up to 2e-6 dB
    np.testing.assert_allclose(shadowed, bare - std_db * normal, rtol=0, atol=1e-5)
    np.testing.assert_allclose(other_std, bare - normal, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("state", "stream"), [("always", 0), ("never", 1)])
def test_sites_share_a_part_of_the_shadowing_in_either_state(state: str, stream: int) -> None:
    positions = places(500)
    rho, key = 0.3, 5
    bare, shared = (
        large_scale(line_of_sight=state, **options).gain_db(positions)
        for options in ({}, {"shadowing_std_db": 1.0, "common": Common(key, rho)})
    )
    geometry = {"correlation_m": 10.0 if state == "always" else 13.0, "area_radius_m": AREA_M}
    own, common = (
        FieldStack([fields]).at(positions)[0]
        for keys in (KEYS, [key])
        for fields in [GaussianFields(keys=keys, stream=stream, **geometry)]
    )
    expected = math.sqrt(1 - rho) * own + math.sqrt(rho) * common
    np.testing.assert_allclose(bare - shared, expected, rtol=0, atol=SINGLE_DB)


def test_line_of_sight_is_each_sites_own_whatever_they_share() -> None:
    positions = places(2000)
    alone, shared = (large_scale(**SPATIAL, common=common) for common in (None, Common(5, 0.5)))
    np.testing.assert_array_equal(alone.line_of_sight(positions), shared.line_of_sight(positions))


@pytest.mark.parametrize("state", ["probabilistic", "soft"])
def test_what_sites_share_of_their_line_of_sight_moves_nothing_else(state: str) -> None:
    """Sites at one place with fully common line of sight have equal states; shadowing does not depend on this."""
    positions, alone = places(2000), large_scale(line_of_sight=state, shadowing_std_db=None)
    shared = large_scale(line_of_sight=state, shadowing_std_db=None, los_common=Common(5, 1.0))
    same = (alone.line_of_sight(positions) == shared.line_of_sight(positions)).all(axis=1)
    assert 0.1 < same.mean() < 0.9
    if state == "probabilistic":
        np.testing.assert_array_equal(alone.gain_db(positions[same]), shared.gain_db(positions[same]))
    alike = large_scale(line_of_sight=state, los_common=Common(5, 1.0), sites_m=np.zeros((7, 2)))
    in_sight = alike.line_of_sight(positions)
    assert (in_sight == in_sight[:, :1]).all()
    assert 0.1 < in_sight.mean() < 0.9


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_fields_that_share_nothing_are_their_own_and_those_that_share_all_are_one(share: float) -> None:
    positions = places(50, 50.0)
    geometry = {"correlation_m": 10.0, "area_radius_m": 50.0, "stream": 0}
    read, own, common = (
        FieldStack([fields]).at(positions)[0]
        for fields in (
            GaussianFields(keys=[1, 2], common=Common(9, share), **geometry),
            GaussianFields(keys=[1, 2], **geometry),
            GaussianFields(keys=[9, 9], **geometry),
        )
    )
    np.testing.assert_array_equal(read, common if share else own)


@pytest.mark.parametrize("state", ["always", "never", "probabilistic", "soft"])
@pytest.mark.parametrize("std_db", [0.0, None])
def test_links_among_sites_are_the_links_and_the_measurements(state: str, std_db: float | None) -> None:
    positions, sites = places(300), np.random.default_rng(SEED).integers(7, size=300)
    positions[0] = 0.0  # at a site, where the minimum distance applies
    subject, apart = (large_scale(line_of_sight=state, shadowing_std_db=std_db) for _ in range(2))
    gain_db, distance_m, everywhere_db = subject.links_among(positions, sites)
    for found, expected in zip((gain_db, distance_m), apart.links_to(positions, sites), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(everywhere_db, apart.gain_db(positions))


@pytest.mark.parametrize("std_db", [0.0, None])
def test_each_place_has_the_gain_of_its_state(std_db: float | None) -> None:
    positions = places(3000)
    always, never, mixed = (
        large_scale(line_of_sight=state, shadowing_std_db=std_db)
        for state in ("always", "never", "probabilistic")
    )
    in_sight = mixed.line_of_sight(positions)
    assert 0.1 < in_sight.mean() < 0.9
    expected = np.where(in_sight, always.gain_db(positions), never.gain_db(positions))
    np.testing.assert_array_equal(mixed.gain_db(positions), expected)
    assert always.line_of_sight(positions).all()
    assert not never.line_of_sight(positions).any()


@pytest.mark.parametrize("std_db", [0.0, None])
def test_soft_line_of_sight_mixes_both_gains_as_in_7_6_3_3(std_db: float | None) -> None:
    positions, carrier_hz = places(3000), 3.5e9
    always, never, soft = (
        large_scale(line_of_sight=state, shadowing_std_db=std_db) for state in ("always", "never", "soft")
    )
    field = GaussianFields(keys=KEYS, correlation_m=50.0, area_radius_m=AREA_M, stream=2, law="gaussian")
    distance_m = np.stack([soft.links_to(positions, np.full(3000, site))[1] for site in range(7)], axis=1)
    probability = UMi().los_probability(np.maximum(distance_m, 10.0))
    margin = special.ndtri(probability) - FieldStack([field]).at(positions)[0]
    state = 0.5 + np.arctan(np.sqrt(20 / (3e8 / carrier_hz)) * margin) / np.pi
    gains_db = [one.gain_db(positions) for one in (always, never)]
    linear = [10 ** (one.astype(float) / 10) for one in gains_db]
    expected = 10 * np.log10(state**2 * linear[0] + (1 - state**2) * linear[1])
    # The table of P_LoS errs by 1e-5. Where line of sight is nearly certain, this changes the margin by 2e-3, the
    # state by 0.01, and the gain in the middle of a change by 0.2 dB. Elsewhere, single precision limits the error.
    found = soft.gain_db(positions)
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.2)
    assert np.median(np.abs(found - expected)) < SINGLE_DB
    certain = np.abs(margin) > 0.01  # margins so large that rounding cannot change their sign
    np.testing.assert_array_equal(soft.line_of_sight(positions)[certain], margin[certain] > 0)
    one = soft.links_to(positions, np.full(3000, 3))[0]
    np.testing.assert_allclose(one, found[:, 3], rtol=0, atol=0.01)
    # where line of sight is certain, both states agree up to 1 - s^2 < 0.014
    assert np.abs(found - gains_db[0])[margin > 3].max() < 0.1


def test_a_soft_change_is_continuous_and_a_hard_one_jumps() -> None:
    """In steps of 1 mm, gains change by at most 0.5 dB with a soft line-of-sight state, and jump with a hard one."""
    walk = np.stack([np.linspace(30.0, 90.0, 60_001), np.full(60_001, 21.0)], axis=1)
    steps_db = {
        state: np.abs(
            np.diff(large_scale(line_of_sight=state, shadowing_std_db=None).gain_db(walk), axis=0)
        ).max()
        for state in ("soft", "probabilistic")
    }
    assert steps_db["soft"] < 0.5
    assert steps_db["probabilistic"] > 8.0


def test_places_within_18_m_are_in_sight() -> None:
    subject = large_scale(line_of_sight="probabilistic", sites_m=np.zeros((7, 2)))
    assert subject.line_of_sight(places(3000, 18.0)).all()
    assert not subject.line_of_sight(places(3000, 60.0)).all()


@pytest.mark.parametrize(
    ("model", "heights", "kinks_m"),
    [(UMi(), (10.0, 1.5), [18.0]), (UMa(), (25.0, 1.5), [18.0]), (InH(), (3.0, 1.0), [1.2, 6.5])],
)
def test_the_threshold_gives_exactly_the_models_probability(
    model: PathLoss, heights: tuple[float, float], kinks_m: list[float]
) -> None:
    nearest_m, farthest_m = (10.0, 149.0) if not isinstance(model, InH) else (0.5, 149.0)
    subject = large_scale(
        model=model,
        bs_height_m=heights[0],
        ut_height_m=heights[1],
        min_distance_m=nearest_m,
        area_radius_m=farthest_m,
        line_of_sight="probabilistic",
        sites_m=[[0.0, 0.0]],
        keys=[1],
    )
    distance = np.linspace(nearest_m, farthest_m, 200_001)
    log_square = np.log(distance**2 + (heights[0] - heights[1]) ** 2).astype(np.float32)
    probability = special.ndtr(subject._thresholds.at(log_square).astype(float))
    error = np.abs(probability - model.los_probability(distance))
    # a cell of the table is 5e-4 in ln d3D^2, which is less than 1 cm at d3D = 30 m
    near_a_kink = np.min(np.abs(distance[:, None] - kinks_m), axis=1) < 0.05
    assert error[~near_a_kink].max() < 1e-5
    # the open office jumps by 0.0028 and the mixed office by 0.0038; elsewhere only the slope changes
    assert error[near_a_kink].max() < (4e-3 if isinstance(model, InH) else 2e-4)


def test_too_close_is_held_at_the_minimum() -> None:
    subject = large_scale(sites_m=[[0.0, 0.0], [50.0, 0.0]], keys=[1, 2])
    near, at = [[3.0, 0.0], [0.0, -9.99]], [[10.0, 0.0], [0.0, -10.0]]
    np.testing.assert_allclose(
        subject.links_to(near, [0, 0])[0], subject.links_to(at, [0, 0])[0], rtol=0, atol=1e-12
    )
    # 10 m exactly is not too close, nor is a distance that rounds to 10 m
    circle = 10.0 * np.stack([np.cos(np.arange(99)), np.sin(np.arange(99))], axis=1)
    for where, held in ((near, [True] * 2), (circle, [False] * 99)):
        assert subject.is_held(subject.links_to(where, [0] * len(held))[1]).tolist() == held
    assert subject.links_to(near, [0, 0])[1].tolist() == [3.0, 9.99]


def test_nobody_is_somewhere() -> None:
    assert large_scale(**SPATIAL).gain_db(np.empty((0, 2))).shape == (0, 7)
    assert large_scale(**SPATIAL).links_to(np.empty((0, 2)), np.empty(0, int))[0].shape == (0,)


def test_wraparound_bounds_the_distances_that_can_occur() -> None:
    # without wrap-around 4950 m would be too far; with wrap-around, places are at most 100 sqrt(7) / sqrt(3) m away
    subject = large_scale(area_radius_m=4950.0, wraparound=Wraparound(1, ISD_M))
    positions = places(100, 4950.0)
    farthest = max(subject.links_to(positions, np.full(100, site))[1].max() for site in range(7))
    assert farthest <= 100 * math.sqrt(7 / 3) * (1 + 1e-12)


def test_free_space_by_probability_is_free_space() -> None:
    positions = places(50)
    subject = large_scale(model=FreeSpace(), line_of_sight="probabilistic", shadowing_std_db=None)
    assert subject.line_of_sight(positions).all()
    np.testing.assert_array_equal(
        subject.gain_db(positions), large_scale(model=FreeSpace()).gain_db(positions)
    )


def test_memory_of_19_sites_over_1200_m() -> None:
    subject = large_scale(sites_m=hexagonal_sites(2, 200.0), keys=range(19), area_radius_m=600.0, **SPATIAL)
    # a field is 2 ceil(600 x 8 / d_corr) + 3 nodes wide, for d_corr = 10, 13 and 50 m
    assert subject.memory_bytes == 4 * 19 * (963**2 + 743**2 + 195**2)
    assert subject.memory_bytes < 200e6
    # the table is not computed before it is read
    assert "_table" not in vars(subject.fields)


def test_sites_beyond_the_range_are_not_received() -> None:
    """Of two UMi sites 8 km apart, without shadowing, the farther is beyond 5 km except near the middle.

    Beyond the breakpoint of 210 m, Table 7.4.1-1 has PL = 32.4 + 40 lg d3D + 20 lg 3.5 - 9.5 lg(210^2 + 8.5^2).
    """
    sites_m = [[-4000.0, 0.0], [4000.0, 0.0]]
    subject = large_scale(sites_m=sites_m, keys=KEYS[:2], area_radius_m=4500.0)
    along_m = np.array([-2000.0, -999.0, 0.0, 999.0, 1001.0])
    places_m = np.stack([along_m, np.zeros(5)], axis=1)
    apart_m = np.abs(along_m[:, None] - np.array([-4000.0, 4000.0]))
    breakpoint_m = 4 * 9.0 * 0.5 * 3.5e9 / 3e8
    loss_db = 32.4 + 40 * np.log10(np.hypot(apart_m, 8.5)) + 20 * math.log10(3.5)
    loss_db -= 9.5 * math.log10(breakpoint_m**2 + 8.5**2)
    expected_db = np.where(apart_m < 5000.0, -loss_db, -np.inf)
    # the published breakpoint uses c = 3e8 m/s; the exact constant moves the loss by 0.01 dB
    np.testing.assert_allclose(subject.gain_db(places_m), expected_db, atol=0.01)
    own_db, distances_m, of_all_db = subject.links_among(places_m, np.ones(5, dtype=int))
    np.testing.assert_array_equal(of_all_db, subject.gain_db(places_m))
    # an existing link keeps the loss at the end of the range
    at_end_db = -loss_db[0, 1] + 40 * math.log10(math.hypot(6000.0, 8.5) / math.hypot(5000.0, 8.5))
    np.testing.assert_allclose(own_db, np.append(at_end_db, -loss_db[1:, 1]), atol=0.01)
    np.testing.assert_allclose(distances_m, apart_m[:, 1])
    assert subject.is_beyond(distances_m).tolist() == [True, False, False, False, False]


def test_places_without_any_site_in_range() -> None:
    subject = large_scale(sites_m=[[-4000.0, 0.0], [4000.0, 0.0]], keys=KEYS[:2], area_radius_m=6000.0)
    # along y, the distance to both is 5,657 m at 4,000 m; at the origin it is 4,000 m
    places_m = np.array(
        [[0.0, 4000.0], [0.0, 0.0], [5900.0, 0.0], [0.0, 2999.0], [0.0, 3001.0], [np.nan, 0.0]]
    )
    assert subject.reached(places_m).tolist() == [False, True, True, True, False, False]
    near = large_scale()
    assert near.range_m == math.inf
    assert near.reached(np.array([[10.0, 0.0], [np.nan, np.nan]])).tolist() == [True, False]
