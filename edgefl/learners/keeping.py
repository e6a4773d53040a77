"""Write model files into a run directory: the last models, the best models, and models of every n-th round."""

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from edgefl.contract import VALIDATION_SCORE, Evaluation
from edgefl.errors import EdgeflError
from edgefl.run_directory.circumstances import SCENARIO
from edgefl.run_directory.files import draft_of, settle, writing
from edgefl.run_directory.journal import FILE, lines
from edgefl.run_directory.lending import Loan
from edgefl.run_directory.reading import about_of
from edgefl.run_directory.settings import RecordSettings

if TYPE_CHECKING:
    from edgefl.learning.federation.learner import TorchLearner

FOLDER = "models"


class ModelKeeper:
    """Write the models of a run's cells into the folder `models` of the run's directory or a federation's directory.

    `cell0.safetensors` is the last model of cell 0; with `-best` it is the best model, with `-round40` the model
    after the cell's 40th round of the global model. For `-served` and `-personal` see
    `edgefl.learning.federation.kept_models`.

    Args:
        learners: a federation's directory, relative to the run's directory -> cell -> the learner that trains with
            PyTorch; empty if no models are kept.
    """

    def __init__(
        self,
        directory: Path,
        record: RecordSettings,
        learners: Mapping[str, Mapping[int, "TorchLearner"]],
    ) -> None:
        self._directory, self._record = directory, record
        kept = learners if record.models != "none" else {}
        # path of a model's file without its suffix
        self._learners = {
            directory / within / FOLDER / f"cell{cell}": one
            for within, cells in kept.items()
            for cell, one in cells.items()
        }
        if self.follows_rounds:
            for path, learner in self._learners.items():
                learner.hooks.watch = partial(self._tested, path)

    @property
    def follows_rounds(self) -> bool:
        """Whether model files are written during the run, so that this run must train every round itself."""
        return bool(self._learners) and self._record.follows_rounds

    def finish(self, loan: Loan | None) -> None:
        """Write the last models, at the end of the run.

        Args:
            loan: training results reused from another run; if all results come from that run, its models are copied.
        """
        if not self._learners:
            return
        if loan is not None and not loan.over:
            if self._taken_from(loan):
                return
            loan.end()
        for path in self._learners:
            self._write(path, "")
        for folder in {path.parent for path in self._learners}:
            for draft in (*folder.glob("*.part"), *folder.glob(".tmp*")):  # drafts left by a killed process
                draft.unlink(missing_ok=True)

    def _tested(self, path: Path, evaluation: Evaluation) -> None:
        from edgefl.learning.modules import model_files

        every, learner = self._record.models, self._learners[path]
        if isinstance(every, int):
            if (number := learner.federation.now.round.moment.round) % every == 0:
                self._write(path, f"-round{number}")
            return
        accuracy = evaluation.scalars.get(VALIDATION_SCORE, evaluation.accuracy)
        if accuracy is None:
            return
        best = path.with_name(f"{path.name}-best.safetensors")
        # the best model may come from a round that a resumed run repeats; the repeat makes the same model
        score = learner.trainer.training_data.task.score
        before = model_files.read_about(best).get(score) if best.exists() else -math.inf
        if not isinstance(before, int | float):
            raise EdgeflError(f"{best}: the {score} is missing; delete the file, and resume the run")
        if accuracy > before:
            self._write(path, "-best", **{score: accuracy})

    def _write(self, of: Path, suffix: str, **further: float) -> None:
        from edgefl.learning.federation import kept_models
        from edgefl.learning.modules import model_files

        learner = self._learners[of]
        about, inputs = {**kept_models.about(learner), **further}, learner.trainer.training_data.inputs
        for kind, tensors in kept_models.collections(learner, personal=self._record.models == "personal"):
            ending = "" if kind == kept_models.GLOBAL else f"-{kind}"
            path = of.with_name(f"{of.name}{suffix}{ending}.safetensors")
            with writing(path):
                path.parent.mkdir(exist_ok=True)  # no `parents`, to fail if the run folder was moved
                try:
                    model_files.write(draft_of(path), tensors, {"kind": kind, **about}, inputs)
                    settle(path)
                except BaseException:
                    draft_of(path).unlink(missing_ok=True)
                    raise

    def _taken_from(self, loan: Loan) -> bool:
        """Copy the lending run's model files if it supplied all training results; return whether it did."""
        try:
            theirs = yaml.safe_load((loan.lender / SCENARIO).read_text(encoding="utf-8"))["record"]
            complete = about_of(loan.lender)["status"] == "completed"
        except (EdgeflError, OSError, KeyError, yaml.YAMLError):
            return False
        same = theirs.get("models") == self._record.models
        if not (same and complete and loan.taken == sum(1 for _ in lines(loan.lender / FILE))):
            return False
        files = sorted((loan.lender / FOLDER).glob("*.safetensors"))
        with suppress(OSError):
            (self._directory / FOLDER).mkdir(exist_ok=True)
            for file in files:
                copy = self._directory / FOLDER / file.name
                draft_of(copy).write_bytes(file.read_bytes())
                settle(copy)
            return bool(files)
        return False
