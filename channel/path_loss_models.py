"""What belongs together: a path loss, its probability of line of sight, its shadowing, their correlation."""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from channel import path_loss
from channel.path_loss import LossLines
from channel.shadowing import SHADOWING_STD_DB
from channel.units import FloatArray


class ByState(NamedTuple):
    """One number with line of sight, one without."""

    los: float
    nlos: float


@dataclass(frozen=True)
class PathLossModel:
    """Constants and functions of one environment, so that a scenario that names it gets all of them.

    Source of the numbers: 3GPP TR 38.901, Table 7.4.1-1 (shadowing deviation), Table 7.5-6 (its correlation
    distance), Table 7.6.3.1-2 (correlation distance of the LoS state), Table 7.2-1 and 7.2-2 (heights).
    """

    name: str
    path_loss_db: Callable[..., FloatArray]
    loss_lines: Callable[..., LossLines]
    los_probability: Callable[..., FloatArray]
    std_db: ByState  # of the shadowing
    correlation_m: ByState | None  # of the shadowing; None: the model has no shadowing
    los_correlation_m: float  # of the LoS state
    bs_height_m: float  # customary heights, the defaults of path_loss_db
    ut_height_m: float

    def shadowing_std_db(self, line_of_sight: bool) -> float:
        """Standard deviation of the shadowing in dB, in one state."""
        return self.std_db.los if line_of_sight else self.std_db.nlos


def path_loss_model(name: str) -> PathLossModel:
    """The model whose path loss is `<name>_path_loss_db`.

    Raises:
        ValueError: there is none; the message lists the names.
    """
    if name not in PATH_LOSS_MODELS:
        raise ValueError(f"no path-loss model {name!r}; known: {', '.join(sorted(PATH_LOSS_MODELS))}")
    return PATH_LOSS_MODELS[name]


def _always_in_sight(distance_2d_m: npt.ArrayLike) -> FloatArray:
    return np.ones_like(np.asarray(distance_2d_m, dtype=float))


UMI = PathLossModel(
    name="umi",
    path_loss_db=path_loss.umi_path_loss_db,
    loss_lines=path_loss.umi_loss_lines,
    los_probability=path_loss.los_probability_umi,
    std_db=ByState(SHADOWING_STD_DB[True], SHADOWING_STD_DB[False]),
    correlation_m=ByState(10.0, 13.0),
    los_correlation_m=50.0,
    bs_height_m=10.0,
    ut_height_m=1.5,
)
UMA = PathLossModel(
    name="uma",
    path_loss_db=path_loss.uma_path_loss_db,
    loss_lines=path_loss.uma_loss_lines,
    los_probability=path_loss.los_probability_uma,
    std_db=ByState(4.0, 6.0),
    correlation_m=ByState(37.0, 50.0),
    los_correlation_m=50.0,
    bs_height_m=25.0,
    ut_height_m=1.5,
)
# The mixed office; for the open one, replace los_probability.
INH = PathLossModel(
    name="inh",
    path_loss_db=path_loss.inh_path_loss_db,
    loss_lines=path_loss.inh_loss_lines,
    los_probability=path_loss.los_probability_inh,
    std_db=ByState(3.0, 8.03),
    correlation_m=ByState(10.0, 6.0),
    los_correlation_m=10.0,
    bs_height_m=3.0,
    ut_height_m=1.0,
)
# Nothing stands in free space: no shadowing, and every place is in line of sight.
FREE_SPACE = PathLossModel(
    name="free_space",
    path_loss_db=path_loss.free_space_path_loss_db,
    loss_lines=path_loss.free_space_loss_lines,
    los_probability=_always_in_sight,
    std_db=ByState(0.0, 0.0),
    correlation_m=None,
    los_correlation_m=50.0,
    bs_height_m=10.0,
    ut_height_m=1.5,
)
PATH_LOSS_MODELS = MappingProxyType({model.name: model for model in (UMI, UMA, INH, FREE_SPACE)})
