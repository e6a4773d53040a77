"""Train with every codec in each direction, with and without error feedback; print the loss of accuracy.

    make codecs
    python -m tests.tools.codecs --dataset digits

Fashion-MNIST, logistic regression, 10 devices of `dirichlet` 0.5, FedAvg, 100 rounds with the codecs' defaults. The
exit code is 1 if a loss does not fall, or if a codec ends more than three points behind uncompressed models. Biased
uplink codecs without feedback may lose more accuracy, because what the codec leaves out of an update is lost.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from edgefl.config import registry
from edgefl.config.component import build
from edgefl.contract import SessionStart
from edgefl.learning.codecs import Contraction, Sizes
from edgefl.learning.federation.learner import TorchLearner
from edgefl.learning.federation.training_data import TrainingData
from edgefl.learning.settings import LearningSettings
from edgefl.rng import Streams
from edgefl.testing.cell import within

DEVICES, ROUNDS, SEED = 10, 100, 5
WAYS = ("uplink_codec", "downlink_codec")
POINTS = 3.0  # the largest number of points of accuracy by which a codec may end behind uncompressed models
FEEDBACK = "error_feedback"


@dataclass(frozen=True)
class Case:
    """One codec with its defaults, in one direction.

    feedback: whether it has error feedback, or None if the codec has no such parameter.
    """

    codec: str
    way: str
    feedback: bool | None

    @property
    def learning(self) -> dict[str, Any]:
        """Return the learning settings that the case adds."""
        chosen = {} if self.feedback is None else {FEEDBACK: self.feedback}
        return {self.way: {"name": self.codec, **chosen}}

    @property
    def is_slow(self) -> bool:
        """Whether this is a biased uplink codec without feedback, which never sends what it leaves out."""
        if self.way == "downlink_codec" or self.feedback is not False:
            return False
        one = build(registry.get("codecs", self.codec), {FEEDBACK: False})
        return isinstance(one.distortion(Sizes(((10, 10),))), Contraction)


@dataclass(frozen=True)
class Learned:
    """The result of a run: its initial loss, its final loss, and its final accuracy in percent."""

    loss_before: float
    loss: float
    accuracy: float


def cases() -> list[Case]:
    """Return every registered codec in each direction, with and without feedback if it has the parameter."""
    found = []
    for name in registry.names("codecs"):
        chooses = FEEDBACK in registry.get("codecs", name).model_fields
        found += [
            Case(name, way, feedback) for way in WAYS for feedback in ((True, False) if chooses else (None,))
        ]
    return found


class Trial:
    """Training on one data set, which is read once, and the result with uncompressed models."""

    def __init__(self, dataset: str) -> None:
        self._dataset, self._data = dataset, build(registry.get("datasets", dataset), {}).load()
        self.whole = self.learned()

    def learned(self, **learning: Any) -> Learned:
        """Train ROUNDS rounds with all devices; return the result."""
        given: dict[str, Any] = {
            "dataset": self._dataset,
            "partition": {"name": "dirichlet", "alpha": 0.5},
            "model": "logistic",
            "local": {"lr": 0.05},
            "cost": {"payload": "exchanged", "flops_per_sample": 1.0},
            "evaluation": {"every": ROUNDS},
        }
        how = LearningSettings(**within(given, learning))
        data = TrainingData(how, torch.device("cpu"), devices=DEVICES, load=lambda _: self._data)
        learner = TorchLearner(how, data, streams=Streams(SEED))
        ids = list(range(DEVICES))
        stage = next(learner.session(SessionStart(1, tuple(ids), longest=ROUNDS)))
        for round_ in range(1, ROUNDS + 1):
            stage.train(ids, round_)
            stage.aggregate(ids)
        opening, ended = stage.facts.opening, stage.evaluate()
        assert opening
        assert ended
        return Learned(float(opening.loss or 0), float(ended.loss or 0), 100 * float(ended.accuracy or 0))

    def faults(self, case: Case, learned: Learned) -> list[str]:
        """Return the faults in a result of this case."""
        found = []
        if not learned.loss < learned.loss_before:
            found.append(f"the loss goes from {learned.loss_before:.3g} to {learned.loss:.3g}")
        behind = self.whole.accuracy - learned.accuracy
        if behind > POINTS and not case.is_slow:
            found.append(f"it ends {behind:.1f} points behind uncompressed models")
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of docs/codecs.md, and faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="fashion_mnist")
    trial = Trial(parser.parse_args(arguments).dataset)
    print(f"Uncompressed models: {trial.whole.accuracy:.1f} % after {ROUNDS} rounds.\n")
    print(
        "| codec | uplink, with feedback | uplink, without feedback"
        " | downlink, with feedback | downlink, without feedback |\n"
        "|---|---:|---:|---:|---:|"
    )
    wrong = []
    of_all = cases()
    for name in registry.names("codecs"):
        cells = dict.fromkeys(((way, feedback) for way in WAYS for feedback in (True, False)), "")
        for case in (one for one in of_all if one.codec == name):
            learned = trial.learned(**case.learning)
            cells[case.way, case.feedback is not False] = f"{learned.accuracy:.1f}"
            wrong += [f"{case}: {fault}" for fault in trial.faults(case, learned)]
        print(f"| `{name}` | {' | '.join(cells.values())} |", flush=True)
    print("", *wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
