"""Versions of the packages that numbers depend on."""

from functools import cache
from importlib.metadata import version

PACKAGES = ("torch", "numpy", "scipy", "simpy")


@cache
def versions() -> dict[str, str]:
    """Return package -> version."""
    return {package: version(package) for package in PACKAGES}
