"""Test that every column of a run directory's tables has a meaning, and that no meaning is left over."""

import inspect

import pytest

from edgefl.contract import REPORTED_LOSS, REPORTED_NORM, averages
from edgefl.engine.federation import cloud, observers
from edgefl.engine.federation.deciding.excess import ENERGY_EXCESS
from edgefl.engine.records import CONNECTING, OUT_OF_COVERAGE, DeviceRound, LedgerRow, Round
from edgefl.learning.algorithms._clustered import CLUSTER, LOWEST_LOSS
from edgefl.learning.federation import drifting, theory, trainer
from edgefl.learning.privacy import EPSILON
from edgefl.learning.scores.metrics import METRICS
from edgefl.run_directory.columns import meanings
from edgefl.run_directory.results import TABLES

STALLS = ("stalled_s", "stalled_j")
# columns that a table has only with some settings
FURTHER: dict[type, tuple[str, ...]] = {
    Round: (
        *(OUT_OF_COVERAGE, CONNECTING, ENERGY_EXCESS, drifting.DRIFTED, drifting.DRIFT_SHARE),
        *(observers.STALENESS_MEAN, observers.STALENESS_MAX, observers.WORKING),
        *(cloud.CLOUD_VERSION, cloud.CLOUD_WAIT_S),
        *(cloud.BACKHAUL_S, cloud.BACKHAUL_BITS, cloud.BACKHAUL_J),
        *(trainer.ACCURACY_STD, trainer.ACCURACY_BY_SAMPLES, trainer.ACCURACY_WORST_TENTH),
        *(*averages(trainer.PERSONAL_ACCURACY), *trainer.VALIDATED, *METRICS, *theory.COLUMNS),
    ),
    DeviceRound: (
        *("class", "access_s", *STALLS, "link_failures", CLUSTER, LOWEST_LOSS, REPORTED_LOSS, REPORTED_NORM),
        *(EPSILON, observers.DISPATCH, observers.BEGAN_FROM, observers.STALENESS),
        *(trainer.EPOCHS, trainer.PERSONAL_ACCURACY, trainer.TEST_SAMPLES),
    ),
    LedgerRow: ("class", "circuit_j", *STALLS),
}


@pytest.mark.parametrize("row", TABLES)
def test_every_column_has_a_meaning(row: type) -> None:
    columns = {*inspect.get_annotations(row), *FURTHER.get(row, ())}
    about, meant = meanings()[TABLES[row]]
    assert set(meant) == columns
    assert about
    assert all(meant.values())


def test_every_table_has_a_meaning() -> None:
    assert sorted(meanings()) == sorted(TABLES.values())
