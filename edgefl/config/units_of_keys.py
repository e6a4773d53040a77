"""The unit of a key, which its name ends with: `radius_m` is in metres."""

UNITS = {
    "per_km2": "1/km²",
    "dbm_hz": "dBm/Hz",
    "m_s": "m/s",
    "m_s2": "m/s²",
    "per_s": "1/s",
    "per_m": "1/m",
    "per_hour": "1/h",
    "per_cycle": "per cycle",
    "deg_s": "degrees/s",
    "s": "s",
    "m": "m",
    "hz": "Hz",
    "dbm": "dBm",
    "dbi": "dBi",
    "db": "dB",
    "w": "W",
    "j": "J",
    "min": "min",
    "deg": "degrees",
    "bits": "bits",
    "gb": "GB",
    "hour": "h",
    "hours": "h",
    "flops_per_sample": "FLOPs",
}


def unit_of(key: str) -> str | None:
    """Return the unit of a key, say Hz for bandwidth_hz; None: its name has none."""
    return next((unit for suffix, unit in UNITS.items() if key == suffix or key.endswith(f"_{suffix}")), None)
