"""Estimate the memory that a round needs for its participants and the fading of their links."""

from edgefl.channel.diversity import PAGE
from edgefl.channel.transfer import AUTO_SLOTS
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.federation.plan import LINKS_AT_ONCE
from edgefl.engine.settings import RoundSettings

LEAST_BYTES = 2_500  # lower bound of the bytes that a participant's link, part and row of devices.csv take
MEASURED_BYTES = 3_400
RENEWAL_BYTES = 27_000  # bytes per link, measured, if transfers are too long to be drawn slot by slot
EFFICIENCY = 3.0  # bit/s/Hz of an average link
PAGES_BYTES = 2 * 2 * 8  # bytes per link and slot of a block, for two pages of real and imaginary parts
POWERS_BYTES = 2 * 8 * PAGE  # bytes per link with several parts of the band: two pages of their mean power


def least_bytes(radio: RadioSettings, rounds: RoundSettings, participants: int) -> float:
    """Return the minimum memory of a round in bytes; without slot-by-slot transfers, no fading is drawn."""
    links = 0 if radio.sharing == "static" and radio.fidelity != "slot" else participants
    if radio.sharing == "static" and rounds.deadline_s is None:
        links = min(links, LINKS_AT_ONCE)
    return LEAST_BYTES * participants + _fading_bytes(radio) * links


def expected_bytes(radio: RadioSettings, participants: int, bits: float) -> float:
    """Estimate the memory of a round, given the size of its transfers."""
    slots = participants * bits / (EFFICIENCY * radio.bandwidth_hz * radio.slot_s)
    drawn = radio.sharing == "dynamic" or radio.fidelity == "slot" or slots < AUTO_SLOTS
    read = drawn and radio.fidelity != "renewal"
    of_link = 2 * _fading_bytes(radio) if read else RENEWAL_BYTES
    return MEASURED_BYTES * participants + of_link * min(participants, LINKS_AT_ONCE)


def _fading_bytes(radio: RadioSettings) -> int:
    """Return the memory in bytes that a link's fading occupies after the first read."""
    return PAGES_BYTES * radio.fading_block if radio.link.frequency_taps == 1 else POWERS_BYTES
