"""Settings of the radio. Field defaults come from Table I of the journal paper; nr's values are in `presets`."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from edgefl.channel.fading import BLOCK
from edgefl.channel.modulation import Steps
from edgefl.channel.resource_blocks import block_hz
from edgefl.channel.schedulers import Scheduler
from edgefl.channel.tdd import Direction
from edgefl.config import registry
from edgefl.config.scenario_fields import Named, Section
from edgefl.engine.air.access import AccessSettings
from edgefl.engine.air.measured.settings import MeasuredSettings
from edgefl.engine.air.presets import Preset, with_radio_preset
from edgefl.engine.air.radio_sections import (
    NONE_IN_WORDS,
    BudgetSettings,
    LinkSettings,
    MonitoringSettings,
    PropagationSettings,
    TddSettings,
)

# 38.214, 6.1.2.2: any number of blocks may be allocated to a device with little power. A device uses at least this
# part of a fixed share, and has a link only if its uplink reaches the lowest rate on this part of the band (17 of 273
# blocks, 150 kbit/s in DDDSU). At lower rates a round would wait minutes for a single model.
SMALLEST_PART = 0.0625

# Slots of a link's fading drawn at once with preset nr, where transfers take some 100 slots and are computed for 0.2
# s at a time. With journal, transfers take thousands of slots, and the block size determines the fading.
SHORT_BLOCK = 400


class RadioSettings(Section):
    """Carrier, band, time grid, and how devices share the band; other parts of the radio have their own sections."""

    preset: Preset = Field(
        "nr",
        description="defaults of the other keys. nr: a realistic radio, with 38.901's line of sight and penetration"
        " loss, NR's rates, frames and overheads, and a phone's energy; journal: the journal paper's Table I, and"
        " its way of counting training work",
    )
    carrier_hz: float = Field(
        3.5e9, ge=0.5e9, le=100e9, description="carrier frequency; the path loss rises with it"
    )
    bandwidth_hz: float = Field(
        100.0e6,
        ge=1e5,
        le=4e9,
        description="system bandwidth W; with preset: nr, the default of a site's power (budget.server_power_dbm)"
        " follows it",
    )
    path_loss: Annotated[Any, Named("path_loss", "umi", short=True)] = Field(
        "umi",
        validate_default=True,
        description="path-loss model: loss between a site and a device, from their distance and line of sight",
    )
    slot_s: float = Field(0.5e-3, ge=1e-5, le=1e-2, description="slot length tau")
    scheduler: Annotated[Any, Named("schedulers", "equal_share")] = Field(
        "equal_share", validate_default=True, description="which device gets which share of the band"
    )
    sharing: Literal["static", "dynamic"] = Field(
        "static",
        description="static: shares are fixed for a round (J); dynamic: shares change when a transfer starts or ends,"
        " or in every slot, depending on the scheduler; with rates: cqi in whole resource blocks, and each block goes"
        " to a device that can use it",
    )
    tdd: TddSettings | None = Field(
        None,
        description="TDD frame; null: separate intervals (J) or separate bands (FDD) for the two directions",
    )
    access: AccessSettings | None = Field(
        None,
        description="access delay before the first bit of a transfer, and connected-mode DRX; null: neither",
    )
    neighbour_load: float = Field(
        0.0,
        ge=0,
        le=1,
        description="fraction of slots in which the other sites transmit and so interfere with the downlink. With"
        " power_over_share: full, each of these sites serves as many downlinks at once as the cell. With"
        " interference: slot, one device in every other cell also transmits in this fraction of slots, with uplink"
        " power control, on a part of the band as large as the disturbed link's part",
    )
    interference: Literal["mean", "slot"] = Field(
        "mean",
        description="mean: the downlink's noise is raised by the mean interference, which makes transfers about 1.4"
        " times too long at loads of 0.1 to 0.3 and 1.3 times at 0.5 (rates up to 7.4 bit/s/Hz); slot: other"
        " sites, and devices of other cells, are on or off in each slot",
    )
    downlink: Literal["unicast", "broadcast"] = Field(
        "unicast",
        description="unicast: every device has a share of the band (J); broadcast: one model is sent to all devices"
        " on the whole band, and missing parts follow by unicast",
    )
    # quantile of the devices' mean rates at which a broadcast is sent
    broadcast_quantile: ClassVar[float] = 0.05
    background: Annotated[Any, Named("backgrounds", "load", optional=True)] = Field(
        None, description="traffic of other users on the same band; null: none"
    )
    fidelity: Literal["slot", "renewal", "auto"] = Field(
        "auto", description="slot: draw slots; renewal: draw their number; auto: renewal for long transfers"
    )
    measured: MeasuredSettings | None = Field(
        None, description="measured rates that replace computed rates: {path, columns, begin_s}; null: none"
    )
    propagation: PropagationSettings = PropagationSettings()
    budget: BudgetSettings = BudgetSettings()
    link: LinkSettings = LinkSettings()
    monitoring: MonitoringSettings = MonitoringSettings()

    @model_validator(mode="before")
    @classmethod
    def _preset_fills(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        words = {"tdd": None} if data.get("tdd") == NONE_IN_WORDS else {}
        return with_radio_preset(data | words) if data.get("preset", "nr") == "nr" else data | words

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        """Yield an error message for each conflict between keys; only the first is reported."""
        if self.measured is not None:  # with measured rates, none of the keys checked below can be set
            return
        scheduler: Scheduler = self.scheduler
        scheduler_name = registry.name_of("schedulers", scheduler)
        if self.link.rates == "cqi":
            if self.bandwidth_hz < (least_hz := block_hz(self.slot_s)):
                yield (
                    f"bandwidth_hz {self.bandwidth_hz:g} is less than a resource block, {least_hz:g} Hz with"
                    f" slot_s {self.slot_s:g}: raise it, use longer slots, or set link.rates: shannon"
                )
            if self.monitoring.t310_s is None:
                yield (
                    "links below the lowest CQI carry no data, but none would be given up: set monitoring.t310_s,"
                    " or link.rates: shannon"
                )
            if scheduler.of_shannon:
                yield (
                    f"{scheduler_name} supports only Shannon's rates: set link.rates: shannon, or another scheduler"
                )
        if self.monitoring.coverage_margin_db is not None:
            if self.link.rates == "shannon":
                yield "monitoring.coverage_margin_db is relative to the lowest CQI: set link.rates: cqi"
            if self.propagation.shadowing == "round":
                yield (
                    "monitoring.coverage_margin_db: coverage must depend on the place alone: set"
                    " propagation.shadowing: spatial"
                )
        yield from self._problems_of_the_band(scheduler, scheduler_name)

    def _problems_of_the_band(self, scheduler: Scheduler, scheduler_name: str) -> Iterator[str]:
        """Yield an error message for each conflict between keys about the division of the band."""
        uplink_full = self.budget.uplink_rule == "full"
        power_by_block = "set budget.power_over_share: per_resource_block"
        dynamic = "set sharing: dynamic, or"
        if self.link.frequency_taps > 1 and scheduler.of_shannon:
            yield f"{scheduler_name} supports only flat fading: set link.frequency_taps: 1, or another scheduler"
        if self.by_slot and self.budget.power_over_share == "full":
            yield f"with interference: slot each neighbour spreads its power over the whole band: {power_by_block}"
        if self.by_slot and self.fidelity == "renewal":
            yield "fidelity: renewal does not support interference: slot: set fidelity: auto or slot"
        whole = self.budget.uplink_p0_dbm is not None and self.sharing == "dynamic" and uplink_full
        if whole and self.link.rates == "shannon":
            yield (
                "budget.uplink_p0_dbm sets a device's power by its share of the band, which sharing: dynamic keeps"
                " changing: set link.rates: cqi, budget.uplink_power_over_share: per_resource_block, or sharing:"
                " static"
            )
        if self.flexible and self.sharing != "dynamic":
            yield f"tdd.pattern: F follows the data, but sharing: static fixes shares: {dynamic} another pattern"
        if self.flexible and self.downlink == "broadcast":
            yield "tdd.pattern: F does not fit a broadcast, which has its own slots: set downlink: unicast"
        if self.background is not None and self.sharing != "dynamic":
            yield (
                f"background traffic changes within a round, but sharing: static fixes shares: {dynamic} leave it out"
            )
        if self.background is not None and self.budget.power_over_share == "full":
            yield f"with background traffic a site spreads a fixed power over the whole band: {power_by_block}"
        if scheduler.per_slot and self.sharing == "static":
            yield f"{scheduler_name} decides slot by slot: {dynamic} another scheduler"
        if self.sharing == "dynamic" and self.fidelity == "renewal":
            yield "a dynamically shared band is simulated slot by slot: set fidelity: auto or slot"

    def in_blocks(self, direction: Direction) -> bool:
        """Return whether a direction's band is divided into whole NR resource blocks and not into fractions."""
        full = direction == "downlink" and self.budget.power_over_share == "full"
        return self.link.rates == "cqi" and self.sharing == "dynamic" and not full

    def steps(self, direction: Direction) -> Steps | None:
        """Return the rate steps of a direction, or None with Shannon's rates."""
        if direction == "downlink" or self.budget.uplink_rule != "full":
            return self.link.steps(direction)
        return self.link.steps(direction, SMALLEST_PART)

    @property
    def fading_block(self) -> int:
        """Number of slots of a link's fading that are drawn at once."""
        return SHORT_BLOCK if self.preset == "nr" else BLOCK

    @property
    def only_dynamic(self) -> list[str]:
        """Keys with values that need a dynamically shared band."""
        needs = {
            "radio.scheduler": self.scheduler.per_slot,
            "radio.tdd.pattern: F": self.flexible,
            "radio.background": self.background is not None,
        }
        return [key for key, needed in needs.items() if needed]

    @property
    def flexible(self) -> bool:
        """Whether all slots are flexible, so that each one serves the direction that has data to send."""
        return self.tdd is not None and self.tdd.pattern_of().flexible

    @property
    def by_slot(self) -> bool:
        """Whether interference is simulated slot by slot."""
        return self.interference == "slot" and self.neighbour_load > 0
