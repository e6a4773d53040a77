"""Sections of the radio's settings: its frame, propagation, link budget, link adaptation, and monitoring."""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from edgefl.channel.modulation import Steps
from edgefl.channel.packet_errors import PacketErrors, ThresholdErrors, WaterfallErrors
from edgefl.channel.tdd import Direction, Pattern
from edgefl.channel.units import db_to_linear
from edgefl.config.scenario_fields import Section

# scenarios of earlier versions use this word instead of null for tdd and coverage_margin_db
NONE_IN_WORDS = "none"


class TddSettings(Section):
    """A TDD frame, which assigns slots to directions."""

    pattern: str = Field(
        "DDDSU",
        description="one letter per slot: D: downlink, U: uplink, S: special; or only the letter F: all slots are"
        " flexible, and slots in which the cell has no uplink data carry its downlink data",
    )
    special: str = Field("10:2:2", description="symbols of a special slot, downlink:guard:uplink, 14 in all")

    @model_validator(mode="after")
    def _valid(self) -> Self:
        self.pattern_of()
        return self

    def pattern_of(self) -> Pattern:
        """Return the pattern as an object of the package `channel`."""
        return Pattern(self.pattern, self.special)


class PropagationSettings(Section):
    """Line of sight and shadowing, which together with path loss make up a link's gain."""

    line_of_sight: Literal["always", "never", "probabilistic", "soft"] = Field(
        "always",
        description="always: LoS everywhere (J); never: LoS nowhere; probabilistic: drawn for each place (38.901);"
        " soft: also drawn, but links change gradually between LoS and NLoS (7.6.3.3), and do so a third as often",
    )
    shadowing: Literal["round", "spatial"] = Field(
        "round", description="round: drawn for each round (J); spatial: a function of the place"
    )
    shadowing_std_db: float | None = Field(
        None, ge=0, le=20, description="standard deviation; null: path_loss sets it (UMi: LoS 4, NLoS 7.82)"
    )
    site_correlation: float = Field(
        0.5,
        ge=0,
        le=1,
        description="correlation of a place's shadowing towards different sites",
    )
    los_site_correlation: float = Field(
        0.0,
        ge=0,
        le=1,
        description="correlation, between different sites, of the Gaussian fields that decide whether places have"
        " line of sight; 0: sites are independent, as in 38.901",
    )


class BudgetSettings(Section):
    """Powers, noise and antenna gains, which determine a link's SNR."""

    noise_dbm_hz: float = Field(-174.0, ge=-200, le=-100, description="noise density N0")
    server_power_dbm: float = Field(43.0, ge=-40, le=70, description="downlink power")
    power_over_share: Literal["full", "per_resource_block"] = Field(
        "full",
        description="full: full power over any share (J), so that a site with K downlinks sends K times its power;"
        " per_resource_block: power spread over the whole band",
    )
    uplink_power_over_share: Literal["full", "per_resource_block"] | None = Field(
        None, description="how a device spreads its power over its share; if left out, power_over_share"
    )
    array_gain_db: float = Field(
        0.0,
        ge=0,
        le=40,
        description="beamforming gain of a site's antenna array towards its own devices in line of sight, in "
        "both directions, in addition to a panel's gain; interference does not have this gain, as beams "
        "point elsewhere",
    )
    nlos_array_gain_db: float | None = Field(
        None,
        ge=0,
        le=40,
        description="beamforming gain without line of sight and into buildings, where paths leave in many directions;"
        " if left out, array_gain_db",
    )
    noise_figure_db: float = Field(0.0, ge=0, le=20, description="noise that receivers add to thermal noise")
    site_noise_figure_db: float | None = Field(
        None, ge=0, le=20, description="noise figure of the base stations; if left out, noise_figure_db"
    )
    interference_margin_db: float = Field(0.0, ge=0, le=40, description="rise of the noise on all links")
    uplink_p0_dbm: float | None = Field(
        None,
        ge=-202,
        le=24,
        description="uplink power control (38.213, 7.1.1): target received power P0 per 180 kHz; null: always full"
        " power (J)",
    )
    uplink_alpha: float = Field(
        0.8, ge=0, le=1, description="share of the path loss in dB that uplink power control compensates for"
    )

    @property
    def uplink_rule(self) -> Literal["full", "per_resource_block"]:
        """The rule by which a device spreads its power over its share of the band."""
        return self.uplink_power_over_share or self.power_over_share


class LinkSettings(Section):
    """Rate of a link at its SNR, with overheads and losses."""

    downlink_layers: int = Field(
        1,
        ge=1,
        le=8,
        description="maximum number of layers of a downlink (38.306, 4.1.2: v_Layers), which share its power; the"
        " number with the highest rate is used",
    )
    uplink_layers: int = Field(
        1,
        ge=1,
        le=4,
        description="maximum number of layers of an uplink: 2 with two transmitters in a phone (38.101-1, 6.2D)",
    )
    max_efficiency: float | None = Field(
        None, ge=1e-3, le=20, description="maximum rate (highest modulation), bits/s/Hz; null: no limit"
    )
    rates: Literal["shannon", "cqi"] = Field(
        "shannon",
        description="shannon: log2(1 + SNR), J; cqi: the steps of NR's CQI table (38.214, Table 5.2.2.1-3)",
    )
    # gap between the CQI table's rates and Shannon's limit, for NR's LDPC codes and 256QAM with short blocks
    snr_gap_db: ClassVar[float] = 2.0
    control_overhead: float = Field(
        0.0, ge=0, le=0.9, description="share of the band for control channels and reference signals"
    )
    protocol_overhead: float = Field(0.0, ge=0, le=0.9, description="share of headers in the bits sent")
    harq_bler: float = Field(
        0.0,
        ge=0,
        le=0.5,
        description="share of blocks that are sent twice; the two copies combined are always received",
    )
    frequency_taps: int = Field(
        1,
        ge=1,
        le=64,
        description="number of independent parts of the band: a slot's power is averaged over them, and, with rates:"
        " cqi, a transport block is coded over them; 1: flat fading (J)",
    )
    uplink_waterfall_db: float | None = Field(
        None,
        ge=-40,
        le=40,
        description="packet errors: an upload is lost at its end with probability 1 - E exp(-m / SNR), the mean"
        " over fading, with this m and the SNR on the upload's share of the band (Chen et al., 2021: 0.023); null:"
        " all uploads arrive",
    )
    uplink_threshold_db: float | None = Field(
        None,
        ge=-40,
        le=60,
        description="packet errors: an upload is lost if the SNR on its share of the band is below this threshold at"
        " its end (Yang et al., 2020: 20); null: all uploads arrive",
    )

    @model_validator(mode="after")
    def _steps_fit(self) -> Self:
        if self.rates == "cqi":
            Steps(self.snr_gap_db, self.max_efficiency)
        else:
            chosen = {
                "downlink_layers": self.downlink_layers > 1,
                "uplink_layers": self.uplink_layers > 1,
            }
            for key in filter(chosen.get, chosen):
                raise ValueError(f"{key} needs the rates of NR: set rates: cqi, or leave {key} out")
        if None not in (self.uplink_waterfall_db, self.uplink_threshold_db):
            raise ValueError(
                "uplink_threshold_db: uplink_waterfall_db already sets which uploads are lost: leave one of them out"
            )
        return self

    @property
    def packet_errors(self) -> PacketErrors | None:
        """The model of packet errors of uploads, or None if all uploads arrive."""
        if self.uplink_waterfall_db is not None:
            return WaterfallErrors(float(db_to_linear(self.uplink_waterfall_db)), self.frequency_taps)
        if self.uplink_threshold_db is not None:
            return ThresholdErrors(float(db_to_linear(self.uplink_threshold_db)), self.frequency_taps)
        return None

    def steps(self, direction: Direction, smallest_part: float = 1.0) -> Steps | None:
        """Return the rate steps of a direction, or None with Shannon's rates.

        Args:
            smallest_part: smallest part of the band in which a transmitter may concentrate its power.
        """
        if self.rates == "shannon":
            return None
        layers = self.downlink_layers if direction == "downlink" else self.uplink_layers
        return Steps(self.snr_gap_db, self.max_efficiency, layers, smallest_part, self.frequency_taps)

    @property
    def goodput(self) -> float:
        """Share of the bits, 0 to 1, that remains after overheads and retransmissions."""
        return (1.0 - self.control_overhead) * (1.0 - self.protocol_overhead) / (1.0 + self.harq_bler)


class MonitoringSettings(Section):
    """Measurement of gains, and failure of weak links."""

    gain_reading: Literal["round", "interval"] = Field(
        "round",
        description="round: the gain is measured at a round's start only (J); interval: it is measured again every"
        " handover.measurement_interval_s while a transfer lasts",
    )
    t310_s: float | None = Field(
        None,
        ge=0.05,
        le=10,
        description="radio link failure: a link below the lowest CQI carries no data, and is given up after this"
        " time (T310, 38.331: 1); null: no link is given up",
    )
    t311_s: float = Field(
        0.0,
        ge=0,
        le=30,
        description="time for which a device searches for a cell after a radio link failure, to resume its transfer"
        " there (T311, 38.331: 1 to 30); with a deadline, it searches at idle power until the deadline; 0:"
        " the device leaves the round at once",
    )
    # s, to find a cell and set up a link: 38.133, 6.2.1: 50 ms + 200 ms to identify a cell + its SIB1 + random access
    reestablishment_s: ClassVar[float] = 0.4
    coverage_margin_db: float | None = Field(
        None,
        ge=0,
        le=30,
        description="a device is out of coverage, and thus absent, while its mean SINR in either direction "
        "exceeds the SINR of the lowest CQI by less than this value; null: all devices are present (J)",
    )

    @field_validator("coverage_margin_db", mode="before")
    @classmethod
    def _none_in_words(cls, value: Any) -> Any:
        return None if value == NONE_IN_WORDS else value

    @model_validator(mode="after")
    def _time_for_a_link(self) -> Self:
        if self.t311_s and self.t310_s is None:
            raise ValueError("t311_s begins at a radio link failure, but no link ever fails: set t310_s")
        if 0 < self.t311_s < self.reestablishment_s:
            raise ValueError(
                f"t311_s {self.t311_s:g} is too short to set up a link: make it at least"
                f" {self.reestablishment_s:g}, or 0"
            )
        return self
