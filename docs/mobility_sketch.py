"""Count handovers in a mobility setting of 3GPP, programmed in NumPy without any code of edgefl.

Macro cells of TR 36.814 (Table A.2.1.1-1 and -2, case 1, 2 GHz), in the layout of TR 36.839 for mobility: hexagons of
500 m, three sectors tilted down by 15 degrees, 128.1 + 37.6 log10(km), shadowing of 8 dB that decorrelates over 25 m,
with correlation 0.5 between sites and 1 between sectors, no line of sight; event A3 of 3 dB on samples of 200 ms
through a layer-3 filter of k = 4. Fading, measurement errors and failed handovers are left out.
"""

import math
from typing import NamedTuple

import numpy as np

ISD_M, RINGS, HEIGHT_M = 500.0, 4, 32.0 - 1.5
BEAM_DEG, ATTENUATION_DB = (70.0, 10.0), (25.0, 20.0)  # across and along
TILT_DEG, BEARINGS_DEG = 15.0, (30.0, 150.0, 270.0)
SHADOWING_DB, FORGETS_M, SHARED = 8.0, 25.0, 0.5
A3_DB, FILTER_K, SAMPLE_S = 3.0, 4, 0.2
WALK_M, SOON_S = 1000.0, 5.0  # walks start within 433 m of the centre; the lattice reaches 1,732 m and more


class Counted(NamedTuple):
    """A user's handovers per minute with standard error, handovers per border, and share that soon returns."""

    a_minute: float
    error: float
    a_border: float
    back: float


def count(speed_m_s: float, trigger_s: float, users: int = 600, seed: int = 0) -> Counted:
    """Move users straight on from the centre cell, each in its own direction, and count their handovers."""
    rng = np.random.default_rng(seed)
    axial = np.array([(q, r) for q in range(-RINGS, RINGS + 1) for r in range(-RINGS, RINGS + 1)])
    axial = axial[np.abs(axial.sum(axis=1)) <= RINGS]
    sites = ISD_M * (axial[:, 0] + 0.5 * axial[:, 1] + 1j * math.sqrt(0.75) * axial[:, 1])
    place = ISD_M * (rng.random(users) - 0.5 + np.exp(1j * math.pi / 3) * (rng.random(users) - 0.5))
    step = speed_m_s * SAMPLE_S * np.exp(2j * math.pi * rng.random(users))
    kept = math.exp(-speed_m_s * SAMPLE_S / FORGETS_M)
    shared, own = rng.standard_normal((users, 1)), rng.standard_normal((users, len(sites)))
    weight, all_users = 0.5 ** (FILTER_K / 4), np.arange(users)
    filtered = power_db(place, sites, shared, own)
    serving, before = filtered.argmax(axis=1), np.full(users, -1)
    changed_s, entered_s = np.full(users, -math.inf), np.full(filtered.shape, math.inf)
    handovers, back = np.zeros(users), 0
    for number in range(1, round(WALK_M / speed_m_s / SAMPLE_S)):
        now_s, place = number * SAMPLE_S, place + step
        for field in (shared, own):
            field *= kept
            field += math.sqrt(1 - kept**2) * rng.standard_normal(field.shape)
        filtered += weight * (power_db(place, sites, shared, own) - filtered)
        ahead = filtered > filtered[all_users, serving][:, None] + A3_DB
        entered_s = np.where(ahead, np.minimum(entered_s, now_s), math.inf)
        # the event falls between this sample and the next
        due = entered_s + trigger_s < now_s + SAMPLE_S * (1 - 1e-9)
        goes = np.flatnonzero(due.any(axis=1))
        target = np.where(due[goes], filtered[goes], -math.inf).argmax(axis=1)
        back += np.count_nonzero((target == before[goes]) & (now_s - changed_s[goes] < SOON_S))
        before[goes], serving[goes], changed_s[goes] = serving[goes], target, now_s
        entered_s[goes] = math.inf
        handovers[goes] += 1
    minutes = WALK_M / speed_m_s / 60
    a_minute, error = handovers.mean() / minutes, handovers.std() / math.sqrt(users) / minutes
    # borders between sectors are twice as long as borders between hexagons: a length of 4 / isd per area (Buffon)
    borders = 60 * 2 * speed_m_s * 4 / ISD_M / math.pi
    return Counted(a_minute, error, a_minute / borders, back / handovers.sum())


def power_db(place: np.ndarray, sites: np.ndarray, shared: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the received power up to a constant, dB [users, cells], with a site's sectors in adjacent columns."""
    way = place[:, None] - sites
    distance_m = np.maximum(np.abs(way), 35.0)
    bearing_deg = np.degrees(np.angle(way))
    down_deg = np.degrees(np.arctan(HEIGHT_M / distance_m))
    along_db = np.minimum(12 * ((down_deg - TILT_DEG) / BEAM_DEG[1]) ** 2, ATTENUATION_DB[1])
    loss_db = 37.6 * np.log10(distance_m)
    loss_db += SHADOWING_DB * (math.sqrt(SHARED) * shared + math.sqrt(1 - SHARED) * own)
    cells = []
    for panel_deg in BEARINGS_DEG:
        off_deg = (bearing_deg - panel_deg + 180) % 360 - 180
        across_db = np.minimum(12 * (off_deg / BEAM_DEG[0]) ** 2, ATTENUATION_DB[0])
        cells.append(-loss_db - np.minimum(across_db + along_db, ATTENUATION_DB[0]))
    return np.stack(cells, axis=-1).reshape(len(place), -1)
