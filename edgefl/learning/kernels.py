"""Load numba, and name the settings that `learning.kernels: numba` does not support."""

from collections.abc import Iterator
from importlib.metadata import version

from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.objective import of_cross_entropy
from edgefl.learning.optimisers.sgd import Sgd
from edgefl.learning.settings import LearningSettings
from edgefl.learning.warm_starts import WarmStart

PLACE = ("learning", "kernels")
# keys of `learning.local` that must keep their defaults
PLAIN = ("early_stopping", "clip_norm", "augmentation", "batching", "precision")


def numba_name() -> str:
    """Return `numba` with its version, for run.json.

    Raises:
        EdgeflError: numba is not installed, or cannot be loaded.
    """
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise EdgeflError(
            f"numba cannot be loaded ({error}): pip install 'edgefl-cosim[kernels]', or set kernels: torch",
            PLACE,
        ) from error
    return f"numba {version('numba')}"


def _trains_plainly(algorithm: Algorithm) -> bool:
    """Return whether an algorithm changes neither gradients nor losses nor steps of local training."""
    kind = type(algorithm)
    same = kind.correct is Algorithm.correct and kind.term is Algorithm.term
    return same and not algorithm.trains_personal and not algorithm.keeps_apart()


def beyond_numba(settings: LearningSettings) -> Iterator[tuple[str, str, str]]:
    """Yield each setting that the numba kernels do not support: its key, the conflict, and the remedy."""
    local = settings.local
    if settings.model.hidden_widths() is None:
        name = registry.name_of("models", settings.model)
        yield "model", f"{name} is not a fully connected network with ReLU", "use logistic, mlp or mlp2"
    if not of_cross_entropy(settings.learned):
        name = registry.name_of("tasks", settings.learned)
        yield "task", f"{name} has a loss other than the cross-entropy", "use classification"
    if not _trains_plainly(settings.algorithm):
        name = registry.name_of("algorithms", settings.algorithm)
        yield "algorithm", f"{name} changes local steps", "use an algorithm that does not, such as fedavg"
    if type(settings.warm_start).anchor is not WarmStart.anchor:
        name = registry.name_of("warm_starts", settings.warm_start)
        yield "warm_start", f"{name} adds to the local loss", "use previous, average or similarity"
    if type(local.optimiser) is not Sgd or local.optimiser.state != "fresh":
        yield "local.optimiser", "numba's code supports only sgd with `state: fresh`", "use sgd"
    for key in PLAIN:
        if getattr(local, key) != type(local).model_fields[key].default:
            yield f"local.{key}", f"numba's code does not support {key}", "leave it out"
