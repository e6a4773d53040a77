"""Sections of the radio's settings: its frame, propagation, link budget, link adaptation, and monitoring."""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from edgefl.channel.modulation import Steps
from edgefl.channel.packet_errors import PacketErrors
from edgefl.channel.tdd import Direction, Pattern
from edgefl.channel.units import db_to_linear
from edgefl.config.scenario_fields import Section

# scenarios of earlier versions switch tdd and coverage_margin_db off by this word, for null
NONE_IN_WORDS = "none"


class TddSettings(Section):
    """A TDD frame: which slots serve which direction."""

    pattern: str = Field("DDDSU", description="one letter per slot: D downlink, U uplink, S special")
    special: str = Field("10:2:2", description="symbols of a special slot: downlink:guard:uplink, sum 14")

    @model_validator(mode="after")
    def _valid(self) -> Self:
        self.pattern_of()
        return self

    def pattern_of(self) -> Pattern:
        """Return the pattern as `channel` describes it."""
        return Pattern(self.pattern, self.special)


class PropagationSettings(Section):
    """Line of sight and shadowing: what a link's gain is beside its path loss."""

    line_of_sight: Literal["always", "never", "probabilistic", "soft"] = Field(
        "always",
        description="LoS everywhere (J), nowhere, or by 38.901's probability and place; soft: likewise, with a"
        " gradual change between LoS and NLoS (7.6.3.3), and a third as many of them",
    )
    shadowing: Literal["round", "spatial"] = Field(
        "round", description="round: drawn anew each round (J); spatial: a place keeps its shadowing"
    )
    shadowing_std_db: float | None = Field(
        None, ge=0, le=20, description="shadowing, dB; none: the path loss's own (UMi: 4 LoS, 7.82 NLoS)"
    )
    site_correlation: float = Field(
        0.5,
        ge=0,
        le=1,
        description="correlation of a place's shadowing towards different sites, with several cells",
    )
    los_site_correlation: float = Field(
        0.0,
        ge=0,
        le=1,
        description="the same of line of sight: correlation of the normal field that decides it by place; 0: each"
        " site by itself, as in 38.901",
    )


class BudgetSettings(Section):
    """Powers, noise and antenna gains: what a link's SNR is made of."""

    noise_dbm_hz: float = Field(-174.0, ge=-200, le=-100, description="noise density N0, dBm/Hz")
    server_power_dbm: float = Field(43.0, ge=-40, le=70, description="downlink power, dBm, -40 to 70")
    power_over_share: Literal["full", "per_resource_block"] = Field(
        "full",
        description="full: full power over whatever share (J), so that a site with K downlinks sends K times its"
        " power; per_resource_block: power spread over the whole band",
    )
    uplink_power_over_share: Literal["full", "per_resource_block"] | None = Field(
        None, description="the same for the devices' power; none: as power_over_share"
    )
    array_gain_db: float = Field(
        0.0,
        ge=0,
        le=40,
        description="what a site's antenna array gains towards its own devices by beams, in both directions, beyond a"
        " panel; what disturbs others has none of it, as beams point elsewhere, dB",
    )
    noise_figure_db: float = Field(0.0, ge=0, le=20, description="noise figure of the receivers, dB")
    site_noise_figure_db: float | None = Field(
        None, ge=0, le=20, description="noise figure of the base stations, dB; none: noise_figure_db"
    )
    interference_margin_db: float = Field(0.0, ge=0, le=40, description="rise of the noise in all links, dB")
    uplink_p0_dbm: float | None = Field(
        None,
        ge=-202,
        le=24,
        description="uplink power control (38.213, 7.1.1): power P0 that should arrive per 180 kHz, dBm, -202"
        " to 24; none: always the full power (J)",
    )
    uplink_alpha: float = Field(
        0.8, ge=0, le=1, description="share of the path loss, in dB, that uplink power control makes up for"
    )

    @property
    def uplink_rule(self) -> Literal["full", "per_resource_block"]:
        """How a device's power is spread over its share of the band."""
        return self.uplink_power_over_share or self.power_over_share


class LinkSettings(Section):
    """What a link carries at its SNR: rates, overheads, and what is lost."""

    downlink_layers: int = Field(
        1,
        ge=1,
        le=8,
        description="most layers of a downlink (38.306, 4.1.2: v_Layers), which share its power; as many are used as"
        " carry most",
    )
    uplink_smallest_part: float = Field(
        1.0,
        ge=1 / 273,
        le=1,
        description="a device with little power sends on a part of its share of the band, where that carries more:"
        " halves of halves down to this; 1: always on all of it (J)",
    )
    max_efficiency: float | None = Field(
        None, ge=1e-3, le=20, description="highest modulation: cap on the rate, bits/s/Hz; none: no cap"
    )
    rates: Literal["shannon", "cqi"] = Field(
        "shannon",
        description="shannon: log2(1 + SNR), J; cqi: the steps of NR's CQI table (38.214, Table 5.2.2.1-3)",
    )
    # what a rate of the CQI table needs beyond Shannon's limit: NR's LDPC codes and 256QAM at short blocks
    snr_gap_db: ClassVar[float] = 2.0
    control_overhead: float = Field(
        0.0, ge=0, le=0.9, description="share of the band for control channels and reference signals"
    )
    protocol_overhead: float = Field(0.0, ge=0, le=0.9, description="share of the bits that are headers")
    harq_bler: float = Field(
        0.0,
        ge=0,
        le=0.5,
        description="share of blocks that are sent a second time, which is combined with the first and arrives",
    )
    frequency_taps: int = Field(
        1,
        ge=1,
        le=64,
        description="independent parts of the band that the power of a slot is the mean of; 1: flat fading (J)",
    )
    uplink_waterfall_db: float | None = Field(
        None,
        ge=-40,
        le=40,
        description="packet errors: an upload is lost at its end with probability 1 - E exp(-m / SNR), over fading,"
        " the SNR that of its share; this is m, dB (Chen et al., 2021: 0.023); none: what is sent arrives",
    )

    @model_validator(mode="after")
    def _steps_fit(self) -> Self:
        if self.rates == "cqi":
            Steps(self.snr_gap_db, self.max_efficiency)
        elif self.downlink_layers > 1 or self.uplink_smallest_part < 1:
            key = "downlink_layers" if self.downlink_layers > 1 else "uplink_smallest_part"
            raise ValueError(f"{key} chooses among rates of NR's table: set rates: cqi, or leave it out")
        return self

    @property
    def packet_errors(self) -> PacketErrors | None:
        """What loses uploads; None: all arrive that are sent."""
        if self.uplink_waterfall_db is None:
            return None
        return PacketErrors(float(db_to_linear(self.uplink_waterfall_db)), self.frequency_taps)

    def steps(self, direction: Direction) -> Steps | None:
        """Return the steps of the rates in a direction, if they have any."""
        if self.rates == "shannon":
            return None
        if direction == "downlink":
            return Steps(self.snr_gap_db, self.max_efficiency, layers=self.downlink_layers)
        return Steps(self.snr_gap_db, self.max_efficiency, smallest_part=self.uplink_smallest_part)

    @property
    def goodput(self) -> float:
        """What overheads and second transmissions leave of the bits, 0 to 1."""
        return (1.0 - self.control_overhead) * (1.0 - self.protocol_overhead) / (1.0 + self.harq_bler)


class MonitoringSettings(Section):
    """When gains are measured, and when a weak link is given up."""

    gain_reading: Literal["round", "interval"] = Field(
        "round",
        description="round: the gain at a round's start holds for it (J); interval: while a transfer lasts, it is"
        " read anew every handover.measurement_interval_s",
    )
    t310_s: float | None = Field(
        None,
        ge=0.05,
        le=10,
        description="radio link failure: a link below the lowest CQI carries nothing, and is given up after this"
        " time (T310, 38.331: 1), s; none: every link goes on for ever",
    )
    t311_s: float = Field(
        0.0,
        ge=0,
        le=30,
        description="after a radio link failure a device looks for a cell for so long, and its transfer goes on"
        " there with what is missing (T311, 38.331: 1 to 30), s; in a round with a deadline it looks on, idle, until"
        " then; 0: its part of the round is over",
    )
    # s, to find a cell and have a link: 38.133, 6.2.1: 50 ms + 200 ms to identify a cell + its SIB1 + random access
    reestablishment_s: ClassVar[float] = 0.4
    coverage_margin_db: float | None = Field(
        None,
        ge=0,
        le=30,
        description="a device whose mean SINR, in either direction, is less than this far above what the lowest CQI"
        " needs is out of coverage: not present, until it has a link again, dB, 0 to 30; none: all are present (J)",
    )

    @field_validator("coverage_margin_db", mode="before")
    @classmethod
    def _none_in_words(cls, value: Any) -> Any:
        return None if value == NONE_IN_WORDS else value

    @model_validator(mode="after")
    def _time_for_a_link(self) -> Self:
        if self.t311_s and self.t310_s is None:
            raise ValueError("t311_s counts from a radio link failure, and no link ever fails: set t310_s")
        if 0 < self.t311_s < self.reestablishment_s:
            raise ValueError(
                f"t311_s {self.t311_s:g} is over before a link could be there: make it"
                f" {self.reestablishment_s:g} at least, or 0"
            )
        return self
