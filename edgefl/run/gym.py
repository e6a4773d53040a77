"""A run as a Gymnasium environment: a step is a round, and an action chooses participants and their resources.

Needs the extra `gym`. `RoundEnv` is the environment of a scenario with one federation. Nothing is written. Importing
this module registers `RoundEnv` with Gymnasium as `edgefl/Round-v0`.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.config.registry import name_of
from edgefl.engine.selectors import Candidates, Decision
from edgefl.errors import EdgeflError, quoted
from edgefl.run.controlled import Controlled, ControlledRun, ControlledWithReports
from edgefl.scenario.scenario import Scenario, given

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as missing:
    raise EdgeflError("edgefl.run.gym needs Gymnasium: pip install 'edgefl-cosim[gym]'") from missing

__all__ = ["CONTROLS", "FEATURES", "RoundEnv"]

# columns of an action, each from 0 to 1: whether the device takes part (above 0.5), the weight of its share of the
# band, and its shares of its maximum power and of its maximum clock
CONTROLS = ("who", "shares", "power", "clock")
# columns of an observation; all 0 for an absent device; -1 for an unknown value
FEATURES = (
    *("present", "samples", "down_s", "compute_s", "up_s", "down_j", "compute_j", "up_j", "charge_j"),
    *("loss", "norm", "duration_s", "joules", "age", "taken", "completed"),
)
MOST = 1e9  # maximum of any feature; larger values are clipped
LEAST = 0.01  # minimum share of power or clock


class RoundEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """An environment in which actions decide a federation's rounds.

    Before a round, an observation is an array [devices, FEATURES], and an action an array [devices, controls] in
    [0, 1]; finite numbers outside this range are clipped. If no device's `who` is above 0.5, the present
    device with the highest value takes part. With an asynchronous server, a step is a decision on the idle devices,
    after which any number of rounds may end; if more devices are chosen than may begin, those with the highest `who`
    do. An action's power replaces power control, also where it is 1. The reward of a step is

        accuracy x (accuracy gained) - seconds x (time passed) - joules x (joules spent by devices).

    `info` contains these three quantities as `accuracy_gained`, `seconds` and `joules`, the model's `accuracy`, and
    the round as a dict of the columns of rounds.csv, with radio tails up to the round's end; the joules of the next
    step include later tails. An episode is the whole run.

    Args:
        scenario: a file, a name from `edgefl scenarios`, a dict, or a `Scenario`; actions replace the scenario's
            selector.
        controls: names of an action's columns, from CONTROLS, beginning with `who`.
        accuracy, seconds, joules: weights of the reward.
        reports: whether devices report losses and lengths of updates, in 32 bits each. A run with a selector that
            asks for no reports has the same numbers only if this is False.
        device: PyTorch device on which models are trained, as in `edgefl.simulate`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: Scenario | str | Path | dict[str, Any] = "quickstart",
        *,
        controls: tuple[str, ...] = CONTROLS,
        accuracy: float = 1.0,
        seconds: float = 0.0,
        joules: float = 0.0,
        reports: bool = False,
        device: str = "cpu",
    ) -> None:
        known = isinstance(controls, tuple) and set(controls) <= set(CONTROLS)
        if not known or controls[:1] != ("who",) or len(set(controls)) < len(controls):
            raise EdgeflError(f"controls are {controls}: choose from {CONTROLS}, and begin with 'who'")
        for name, weight in (("accuracy", accuracy), ("seconds", seconds), ("joules", joules)):
            if not isinstance(weight, int | float) or not math.isfinite(weight):
                raise EdgeflError(f"the reward's weight {name} is {quoted(weight)}: pass a finite number")
        self._scenario, self._device, self._controls = given(scenario), device, controls
        self._weights, self._reports = (accuracy, seconds, joules), reports
        if set(controls) & {"shares", "power"}:
            self._scenario = self._with_fixed_shares()
        devices = self._scenario.devices.number
        if devices is None or self._scenario.layout.cells > 1:
            raise EdgeflError(
                "an environment has one cell and a fixed number of devices: set devices.count, and no layout",
                ("layout",) if devices else ("devices",),
            )
        if self._scenario.federations:
            raise EdgeflError("an environment has one federation: leave federations out", ("federations",))
        self.observation_space = spaces.Box(-1.0, MOST, (devices, len(FEATURES)), np.float64)
        self.action_space = spaces.Box(0.0, 1.0, (devices, len(controls)), np.float64)
        self._run: ControlledRun | None = None
        self._seen, self._end_s, self._accuracy, self._spent_j = 0, 0.0, 0.0, 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start a new run, with the given seed or a seed drawn from the generator of the last given seed.

        Returns:
            The first observation, and `info` with the run's seed and the `accuracy` before training.
        """
        try:
            super().reset(seed=seed)
        except gymnasium.error.Error as error:
            raise EdgeflError(f"seed is {quoted(seed)}: pass an integer of 0 or more, or None") from error
        self.close()
        of_run = int(self.np_random.integers(2**31)) if seed is None else seed
        scenario = self._scenario.model_copy(update={"seed": of_run})
        self._run = ControlledRun(scenario, self._decider(), device=self._device)
        self._seen, self._end_s, self._accuracy, self._spent_j = 0, 0.0, self._run.accuracy_start, 0.0
        return self._observation(self._run.waiting), {"seed": of_run, "accuracy": self._accuracy}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Run until the next decision; the episode ends with the run."""
        run = self._run
        if run is None or run.waiting is None:
            raise EdgeflError("the episode is over, or has not begun: call reset()")
        candidates = run.go_on(self.decision(run.waiting, action, run.most))
        rows = run.rows[self._seen :]
        self._seen = len(run.rows)
        end_s = max((row.end_s for row in rows), default=self._end_s)
        accuracy = next((row.accuracy for row in reversed(rows) if row.accuracy is not None), self._accuracy)
        gained = accuracy - self._accuracy, end_s - self._end_s, run.spent_j - self._spent_j
        self._accuracy, self._end_s, self._spent_j = accuracy, end_s, run.spent_j
        reward = self._weights[0] * gained[0] - self._weights[1] * gained[1] - self._weights[2] * gained[2]
        info: dict[str, Any] = dict(zip(("accuracy_gained", "seconds", "joules"), gained, strict=True))
        info["accuracy"], info["round"] = accuracy, vars(rows[-1]) if rows else {}
        return self._observation(candidates), float(reward), candidates is None, False, info

    def close(self) -> None:
        """Stop the current run."""
        if self._run is not None:
            self._run.stop()
            self._run = None

    def decision(self, candidates: Candidates, action: np.ndarray, most: int) -> Decision:
        """Convert an action to a decision for the present devices, with at most the given number of participants."""
        rows = np.clip(self._numbers(action), 0.0, 1.0)[list(candidates.ids)]
        taken = np.flatnonzero(rows[:, 0] > 0.5)
        if not len(taken):
            taken = np.array([int(rows[:, 0].argmax())])
        if len(taken) > most:  # an asynchronous server has fewer free places
            taken = np.sort(taken[np.argsort(-rows[taken, 0], kind="stable")[:most]])
        told = {name: np.maximum(rows[taken, k], LEAST) for k, name in enumerate(self._controls)}
        return Decision(
            candidates.ids_at(taken),
            up_shares=told["shares"] / told["shares"].sum() if "shares" in told else None,
            power=told.get("power"),
            clock_hz=told["clock"] * candidates.clock_hz[taken] if "clock" in told else None,
        )

    def __getstate__(self) -> dict[str, Any]:
        if self._run is not None:
            raise EdgeflError(
                "a run under way cannot be copied or pickled: copy the environment before reset() or after close()"
            )
        return vars(self).copy()

    def _numbers(self, action: Any) -> np.ndarray:
        """Return an action as finite numbers [devices, controls]."""
        shape = self.action_space.shape
        try:
            given = np.asarray(action)
        except ValueError as error:
            raise EdgeflError(
                f"the action is not an array ({error}): pass numbers of shape {shape}"
            ) from error
        if given.shape != shape or given.dtype.kind not in "fiub":
            raise EdgeflError(
                f"the action has type {given.dtype} and shape {given.shape}: pass numbers of shape {shape}, a row per"
                f" device with {', '.join(self._controls)}"
            )
        if not np.isfinite(given).all():
            device, column = np.argwhere(~np.isfinite(given))[0]
            raise EdgeflError(
                f"the action sets {self._controls[column]} of device {device} to {given[device, column]}: pass finite"
                " numbers from 0 to 1"
            )
        return given.astype(float)

    def _with_fixed_shares(self) -> Scenario:
        """Return the scenario with its decider, which determines the default of radio.sharing."""
        decider = self._decider()
        try:
            return self._scenario.with_(rounds__selector=decider)
        except EdgeflError as error:
            # the user knows no decider, and remedies with `sharing: dynamic` would be refused next
            cause = str(error).replace(f"the selector {name_of('selectors', decider)}", "the environment")
            for remedy in (": set sharing: dynamic", ": leave one of the two out"):
                cause = cause.partition(remedy)[0]
            raise EdgeflError(
                f"shares and power can be controlled only with radio.sharing: static ({cause}): leave shares and"
                " power out of controls, or change the scenario"
            ) from error

    def _decider(self) -> Controlled:
        return ControlledWithReports() if self._reports else Controlled()

    def _observation(self, candidates: Candidates | None) -> np.ndarray:
        seen = np.zeros(self.observation_space.shape or ())
        if candidates is not None:
            columns = [np.ones(len(candidates)), *(getattr(candidates, name) for name in FEATURES[1:])]
            told = np.nan_to_num(np.column_stack(columns), nan=-1.0, posinf=MOST)
            seen[list(candidates.ids)] = np.clip(told, -1.0, MOST)
        return seen


gymnasium.register("edgefl/Round-v0", entry_point=f"{__name__}:{RoundEnv.__name__}")
