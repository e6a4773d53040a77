"""A cloud that averages the models of the cells every few rounds, over a backhaul."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import simpy
from pydantic import Field

from edgefl.config.scenario_fields import Section
from edgefl.contract import Stage
from edgefl.engine.federation.federations import Federations
from edgefl.engine.federation.made import Columns, Made
from edgefl.engine.records import Event, EventName, Recorder

# additional columns of rounds.csv if there is a cloud
CLOUD_VERSION, CLOUD_WAIT_S = "cloud_version", "cloud_wait_s"
BACKHAUL_S, BACKHAUL_BITS, BACKHAUL_J = "backhaul_s", "backhaul_bits", "energy_backhaul_j"


class CloudSettings(Section):
    """A cloud (HierFAVG) that averages the cells' models, which are averages of the devices' models.

    Both averages weight models by their numbers of samples. Each cell has its own symmetric wired line. Source: Liu,
    Zhang, Song and Letaief, Client-Edge-Cloud Hierarchical Federated Learning, ICC 2020.
    """

    every: int = Field(
        ge=1,
        le=1_000_000,
        description="kappa_2: number of rounds between two exchanges with the cloud, counted across sessions",
    )
    waits_for: Literal["cells", "nobody"] = Field(
        "cells",
        description="what the cloud waits for before it makes a model. cells: a model from every cell that has not "
        "ended and has a device; nobody: it does not wait and takes the last model of each cell",
    )
    backhaul_bps: float = Field(
        gt=0, le=1e15, description="rate of a cell's link to the cloud, in each direction, bit/s"
    )
    backhaul_latency_s: float = Field(0.0, ge=0, le=3600, description="one-way latency to the cloud")
    backhaul_j_per_bit: float = Field(
        0.0, ge=0, le=1.0, description="energy per bit on the link to the cloud, in either direction"
    )


class CloudStage(Stage, Protocol):
    """A stage; after any of its rounds, its cell may exchange models with a cloud."""

    def submit(self) -> int:
        """Send the cell's model to the cloud; return its weight: the samples aggregated since the last call.

        The cloud ignores a model of weight 0.
        """

    def adopt(self, cells: Sequence[int], aggregated: bool) -> None:
        """Continue with the weighted mean of the last models that the given cells sent with positive weight.

        Args:
            cells: the cells' numbers, sorted; at least one.
            aggregated: whether the cell's last round made a model; if so, it and the mean count as one version.
        """


@dataclass(frozen=True)
class Exchange:
    """A cell's exchange with the cloud after a round; most rounds have no exchange.

    version: number of the cloud's model that the cell received, or None. waited_s: time from the arrival of the
    cell's model until the cloud's model was made. took_s, bits, energy_j: sums over both directions.
    """

    version: int | None = None
    waited_s: float = 0.0
    took_s: float = 0.0
    bits: int = 0
    energy_j: float = 0.0

    @property
    def is_new(self) -> bool:
        """Whether the cell continues with the cloud's model."""
        return self.version is not None


@dataclass(frozen=True)
class _Sent:
    """A model sent to the cloud that awaits a reply; see `Cloud.exchange`."""

    stage: CloudStage
    samples: int
    aggregated: bool
    answered: simpy.Event


class Cloud:
    """The cloud of a run, which serves the cells with a federation.

    Attributes:
        version: number of models that the cloud has made so far.
    """

    def __init__(
        self, env: simpy.Environment, settings: CloudSettings, federations: Federations, recorder: Recorder
    ) -> None:
        self.settings = settings
        self.version = 0
        self._env, self._federations, self._recorder = env, federations, recorder
        self._waiting: dict[int, _Sent] = {}
        self._samples: dict[int, int] = {}  # weight of each cell's last model
        federations.on_rest = self._look

    def exchange(
        self, cell: int, stage: CloudStage, bits: int, aggregated: bool
    ) -> Generator[simpy.Event, None, Exchange]:
        """Send a cell's model, and receive the cloud's model if one is made; return the exchange.

        Args:
            bits: size of a model.
            aggregated: whether the cell's last round made a model.
        """
        settings, env = self.settings, self._env
        one_way_s = settings.backhaul_latency_s + bits / settings.backhaul_bps
        yield env.timeout(one_way_s)
        arrived_s = env.now
        sent = _Sent(stage, stage.submit(), aggregated, env.event())
        self._waiting[cell] = sent
        if sent.samples:
            self._samples[cell] = sent.samples
        elif settings.waits_for == "cells":
            self._samples.pop(cell, None)
        self._look()
        version = yield sent.answered
        waited_s, ways = env.now - arrived_s, 1
        if version is not None:
            ways = 2
            yield env.timeout(one_way_s)
        energy_j = ways * bits * settings.backhaul_j_per_bit
        return Exchange(version, waited_s, ways * one_way_s, ways * bits, energy_j)

    def _look(self) -> None:
        """Reply to the waiting cells with a model if one is due; reply without a model if all weights are zero."""
        waits = self.settings.waits_for == "cells"
        if not self._waiting or (waits and not self._federations.working <= self._waiting.keys()):
            return
        cells, version = sorted(self._samples), None
        if cells:
            self.version = version = self.version + 1
            self._tell(cells)
        answered, self._waiting = self._waiting, {}
        for cell in sorted(answered):
            sent = answered[cell]
            if cells:
                sent.stage.adopt(cells, sent.aggregated)
            sent.answered.succeed(version)
        if waits:
            self._samples = {}

    def _tell(self, cells: list[int]) -> None:
        all_samples = sum(self._samples.values())
        shares = " ".join(f"{cell}:{self._samples[cell] / all_samples:.6g}" for cell in cells)
        detail = f"version {self.version} of {shares}"
        self._recorder.write(Event(self._env.now, EventName.CLOUD_MODEL, None, None, detail=detail))


class CloudLink:
    """A cell's line to the cloud.

    Args:
        bits: size of a model.
    """

    def __init__(self, cloud: Cloud, cell: int, bits: int) -> None:
        self._cloud, self._cell, self._bits = cloud, cell, bits
        self._rounds = 0

    def after_round(self, stage: Stage, aggregated: bool) -> Generator[simpy.Event, None, Exchange | None]:
        """Exchange models with the cloud, if an exchange is due after this round."""
        self._rounds += 1
        if self._rounds % self._cloud.settings.every:
            return None
        stage = cast(CloudStage, stage)
        return (yield from self._cloud.exchange(self._cell, stage, self._bits, aggregated))

    def columns(self, made: Made) -> Columns:
        """Return the columns of a round's exchange with the cloud."""
        exchange = made.exchanged if isinstance(made.exchanged, Exchange) else Exchange()
        return Columns(
            {
                CLOUD_VERSION: exchange.version,
                CLOUD_WAIT_S: exchange.waited_s,
                BACKHAUL_S: exchange.took_s,
                BACKHAUL_BITS: exchange.bits,
                BACKHAUL_J: exchange.energy_j,
            }
        )
