"""Test that each layer of a table of fields has the same values as a single field, and at nodes the stored values."""

import tracemalloc

import numpy as np
import pytest

from edgefl.channel import gaussian_fields
from edgefl.channel.field_stack import FieldStack
from edgefl.channel.gaussian_fields import Common, GaussianFields, _node_law

AREA_M = 60.0
LAYERS = (
    GaussianFields(keys=[1, 2, 3], correlation_m=10.0, area_radius_m=AREA_M, stream=0, common=Common(9, 0.5)),
    GaussianFields(keys=[1, 2, 3], correlation_m=13.0, area_radius_m=AREA_M, stream=1),
    GaussianFields(keys=[1, 2, 3], correlation_m=50.0, area_radius_m=AREA_M, stream=2, law="gaussian"),
)


def places(count: int, seed: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-40.0, 40.0, (count, 2))


def test_each_layer_is_what_it_is_alone() -> None:
    positions_m = places(200)
    together = FieldStack(LAYERS).at(positions_m)
    assert together.shape == (3, 200, 3)
    for layer, values in zip(LAYERS, together, strict=True):
        np.testing.assert_array_equal(values, FieldStack([layer]).at(positions_m)[0])


@pytest.mark.parametrize(
    ("fields", "wide"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (7, 8), (8, 8), (9, 9), (19, 19)]
)
def test_any_number_of_fields_is_read_and_up_to_eight_take_the_memory_of_a_power_of_two(
    fields: int, wide: int
) -> None:
    layers = [
        GaussianFields(
            keys=list(range(fields)), correlation_m=correlation_m, area_radius_m=AREA_M, stream=stream
        )
        for stream, correlation_m in enumerate((10.0, 13.0))
    ]
    stack, positions_m = FieldStack(layers), places(100)
    found, one = stack.at(positions_m), stack.one_at(positions_m, np.full(100, fields - 1))
    assert found.shape == (2, 100, fields)
    np.testing.assert_array_equal(one, found[..., -1])
    for field in range(fields):
        alone = [
            GaussianFields(keys=[field], correlation_m=c_m, area_radius_m=AREA_M, stream=stream)
            for stream, c_m in enumerate((10.0, 13.0))
        ]
        np.testing.assert_array_equal(found[..., field], FieldStack(alone).at(positions_m)[..., 0])
    assert stack.memory_bytes == 4 * wide * sum(layer.width**2 for layer in layers) == stack._table.nbytes


def test_a_node_has_the_value_that_was_written_for_it() -> None:
    rng = np.random.default_rng(5)
    for number, layer in enumerate(LAYERS):
        table = np.empty((layer.width, layer.width, 3), np.float32)
        layer.fill(table)
        # nodes are at whole multiples of the spacing, half of them left of the origin or below it
        across, up = rng.integers(-int(40.0 / layer.spacing_m), int(40.0 / layer.spacing_m), (2, 30))
        values = FieldStack(LAYERS).at(np.stack([across, up], axis=1) * layer.spacing_m)[number]
        # a multiple of the spacing may miss its node by a rounding error of 1e-14 spacings
        np.testing.assert_allclose(values, table[up + layer.half, across + layer.half], rtol=0, atol=1e-6)


def test_one_field_each_is_what_all_fields_are_there() -> None:
    stack, chosen = FieldStack(LAYERS), np.random.default_rng(6).integers(3, size=200)
    positions_m = places(200)
    everywhere = stack.at(positions_m)
    np.testing.assert_array_equal(stack.one_at(positions_m, chosen), everywhere[:, np.arange(200), chosen])


def test_places_that_were_asked_for_before_are_not_taken_for_others() -> None:
    """Values at cached positions are not reused after the positions changed, even within the same array."""
    stack, here, there = FieldStack(LAYERS), places(5), places(5, seed=7)
    of_here, of_there = (FieldStack(LAYERS).at(positions_m) for positions_m in (here, there))
    held = here.copy()
    for _ in range(2):
        found = stack.at(held)
        np.testing.assert_array_equal(found, of_here)
        found += 1.0  # the caller may change the returned array
    held[:] = there
    np.testing.assert_array_equal(stack.at(held), of_there)
    np.testing.assert_array_equal(stack.at(held[:4]), of_there[:, :4])


def test_a_stack_of_nothing_has_nothing_anywhere() -> None:
    nothing = FieldStack([], fields=7)
    assert nothing.at(places(3)).shape == (0, 3, 7)
    assert nothing.one_at(places(3), np.zeros(3, int)).shape == (0, 3)


def test_values_are_made_again_only_for_other_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second stack of the same layers reads the same table; other layers, or another order, get their own table."""
    made, fill = [], GaussianFields.fill

    def counted(layer: GaussianFields, table: np.ndarray) -> None:
        made.append(layer)
        fill(layer, table)

    FieldStack(LAYERS[1:]).at(places(3))
    monkeypatch.setattr(GaussianFields, "fill", counted)
    first, second = FieldStack(LAYERS), FieldStack(LAYERS)
    np.testing.assert_array_equal(first.at(places(3)), second.at(places(3)))
    assert made == list(LAYERS)
    assert first._table is second._table
    with pytest.raises(ValueError, match="read-only"):
        first._table[0] = 0.0
    turned = FieldStack([LAYERS[1], LAYERS[0], LAYERS[2]]).at(places(3))
    np.testing.assert_array_equal(turned[0], first.at(places(3))[1])
    assert made == [*LAYERS, LAYERS[1], LAYERS[0], LAYERS[2]]


def test_few_places_have_the_values_that_they_have_among_all() -> None:
    """With `few`, only nodes near the first positions are stored until other nodes are read; values do not change."""
    whole, few, positions_m = FieldStack(LAYERS), FieldStack(LAYERS, few=True), places(30)
    fields = np.arange(30) % 3
    for some in (slice(30), slice(7), slice(20, 25)):
        np.testing.assert_array_equal(few.at(positions_m[some]), whole.at(positions_m[some]))
        one = few.one_at(positions_m[some], fields[some])
        np.testing.assert_array_equal(one, whole.one_at(positions_m[some], fields[some]))
    assert "_table" not in vars(few)
    elsewhere_m = places(5, seed=6)
    np.testing.assert_array_equal(few.at(elsewhere_m), whole.at(elsewhere_m))
    np.testing.assert_array_equal(few.at(positions_m), whole.at(positions_m))


def test_places_may_be_told_before_they_are_read_some_at_a_time() -> None:
    few, positions_m = FieldStack(LAYERS, few=True), places(30)
    few.read_first(positions_m)
    for first in range(0, 30, 10):
        few.at(positions_m[first : first + 10])
    assert "_table" not in vars(few)


def test_places_that_need_most_nodes_are_read_from_all_nodes() -> None:
    """For very many places, finding the nodes of each takes longer than drawing all nodes, so all are drawn."""
    whole, few = FieldStack(LAYERS), FieldStack(LAYERS, few=True)
    many_m = places(sum(one.width**2 for one in LAYERS) // 4)
    few.read_first(many_m)
    np.testing.assert_array_equal(few.at(many_m), whole.at(many_m))
    assert "_table" in vars(few)
    assert few.needed_bytes(len(many_m)) >= few.memory_bytes


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("area_radius_m", [1000.0, 2500.0, 5000.0])
def test_the_memory_that_fields_take_is_known_beforehand(area_radius_m: float, few: bool) -> None:
    """The memory used to read the first places is close to the estimate, for nine sites' shadowing.

    The correlation distance is 50 m. The estimate is between three quarters of this memory and 3 % more than it.
    """
    _node_law.cache_clear()
    layer = GaussianFields(
        keys=range(9), correlation_m=50.0, area_radius_m=area_radius_m, stream=0, common=Common(9, 0.5)
    )
    stack = FieldStack([layer], few=few)
    FieldStack(LAYERS).at(places(90))  # the first use imports modules, whose memory must not be counted
    tracemalloc.start()
    stack.at(places(90))
    height = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.75 * height < stack.needed_bytes(90) < 1.03 * height


@pytest.fixture
def repeating(monkeypatch: pytest.MonkeyPatch) -> GaussianFields:
    """Return two fields over 2 km, with memory for only some 300 m."""
    monkeypatch.setattr(gaussian_fields, "MAX_BYTES", 2**20)
    monkeypatch.setattr(gaussian_fields, "REPEATING_BYTES", 2**19)
    fields = GaussianFields(keys=[1, 2], correlation_m=10.0, area_radius_m=2000.0, stream=0)
    assert fields.memory_bytes <= 2**19
    return fields


def test_fields_too_large_for_memory_repeat(repeating: GaussianFields) -> None:
    """Fields have a period along both axes of their grid, which is turned by the angle whose tangent is 0.618."""
    stack, positions_m = FieldStack([repeating]), places(300)
    period_m = repeating.period * repeating.spacing_m
    turn = np.arctan((np.sqrt(5) - 1) / 2)
    along = period_m * np.array([np.cos(turn), -np.sin(turn)])
    across = period_m * np.array([np.sin(turn), np.cos(turn)])
    here = stack.at(positions_m)
    for shift in (along, across, -2 * along + 3 * across):
        # rounding moves a place by a billionth of a grid cell
        np.testing.assert_allclose(stack.at(positions_m + shift), here, atol=1e-5)
    assert np.abs(stack.at(positions_m + along / 2) - here).max() > 1
    # at the seam a tiny negative coordinate wraps to the period itself
    seam = np.array([[0.0, 0.0], [-1e-17, -1e-17], [1e-17, -1e-17]])
    np.testing.assert_allclose(stack.at(seam), np.broadcast_to(stack.at(seam[:1]), (1, 3, 2)), atol=1e-5)


def test_repeating_fields_keep_their_law(repeating: GaussianFields) -> None:
    """Values are standard normal, with correlation exp(-d / 10 m) between places that are not a period apart.

    8,000 places over 2 km in fields of 320 m x 320 m are about 1,000 independent patches of 10 m: means of squares
    and products are within 0.15, more than three standard errors of sqrt(2 / 1,000).
    """
    stack = FieldStack([repeating])
    positions_m = np.random.default_rng(8).uniform(-1300.0, 1300.0, (8000, 2))
    here = stack.at(positions_m)[0]
    assert np.abs(np.mean(here**2, axis=0) - 1).max() < 0.15
    for distance_m in (5.0, 10.0, 20.0):
        there = stack.at(positions_m + np.array([distance_m, 0.0]))[0]
        assert np.abs(np.mean(here * there, axis=0) - np.exp(-distance_m / 10.0)).max() < 0.15
    assert np.abs(np.mean(here[:, 0] * here[:, 1])) < 0.15
