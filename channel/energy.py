"""Energy and computing time of devices."""

from edgefl.channel.units import Values

__all__ = ["compute_energy_j", "compute_time_s", "transfer_energy_j"]


def transfer_energy_j(
    power_w: Values, airtime_s: Values, wait_w: Values, wait_s: Values, bits_j: Values
) -> Values:
    """Return the energy of a transfer: energy for the radio's on-time, for waiting, and for the bits.

    Without waiting and without energy per bit, the result is power times airtime, the journal paper's eq. (42).
    """
    return power_w * airtime_s + (wait_w * wait_s + bits_j)


def compute_time_s(
    flops_per_sample: float, samples: int, *, clock_hz: float, flops_per_cycle: float
) -> float:
    """Return the time of local training, N_p phi e B / (f chi).

    Args:
        flops_per_sample: N_p phi, FLOPs of the forward and backward pass of one sample.
        samples: e B, total number of samples that the local iterations process.
        clock_hz: f, clock rate of the processor.
        flops_per_cycle: chi, FLOPs of the processor per clock cycle.

    Raises:
        ValueError: the work is negative, or the clock or the efficiency is not positive.

    Source: journal paper, eq. (27). Left out: memory traffic, other load, and thermal throttling.
    """
    if not clock_hz > 0:
        raise ValueError(f"clock_hz must be > 0, got {clock_hz}")
    return _cycles(flops_per_sample, samples, flops_per_cycle) / clock_hz


def compute_energy_j(
    flops_per_sample: float,
    samples: int,
    *,
    clock_hz: float,
    flops_per_cycle: float,
    capacitance: float,
) -> float:
    """Return the energy of local training, xi (N_p phi e B / chi) f^2.

    Args:
        flops_per_sample, samples, clock_hz, flops_per_cycle: as in `compute_time_s`.
        capacitance: xi, effective capacitance of the chipset.

    Raises:
        ValueError: work or capacitance is negative, or the clock or the efficiency is not positive.

    Source: journal paper, eq. (28).
    """
    if not clock_hz > 0:
        raise ValueError(f"clock_hz must be > 0, got {clock_hz}")
    if not capacitance >= 0:
        raise ValueError(f"capacitance must be >= 0, got {capacitance}")
    return capacitance * _cycles(flops_per_sample, samples, flops_per_cycle) * clock_hz**2


def _cycles(flops_per_sample: float, samples: int, flops_per_cycle: float) -> float:
    if not flops_per_cycle > 0:
        raise ValueError(f"flops_per_cycle must be > 0, got {flops_per_cycle}")
    if not (flops_per_sample >= 0 and samples >= 0):
        raise ValueError(f"work must be >= 0, got {flops_per_sample} FLOPs per sample x {samples} samples")
    return flops_per_sample * samples / flops_per_cycle
