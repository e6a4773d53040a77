"""The circumstances, besides the seed, that determine a run's results, and their changes since the run stopped."""

import platform
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from edgefl.version import __version__

if TYPE_CHECKING:
    import torch

SCENARIO = "scenario.yaml"
CODE_OF = "the code of "  # beginning of a circumstance's name, followed by an external module
DATA_OF = "the data of "  # beginning of a circumstance's name, followed by a key that names data
KEYS_SHOWN = 3  # maximum number of keys of an edited scenario in a message


def circumstances(
    scenario: Path, device: "torch.device", code: Mapping[str, str], data: Mapping[str, str]
) -> dict[str, str]:
    """Return the circumstances, besides the seed, that determine a run's results.

    Args:
        scenario: the scenario.yaml of the run directory.
        device: the PyTorch device on which models are trained.
        code: module of external components -> the hash of its code.
        data: dotted key of what models learn from -> its checksum.
    """
    import torch

    return {
        "edgefl": __version__,
        SCENARIO: scenario.read_text(encoding="utf-8"),
        **versions(),
        "machine": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "device": device.type,
        "device name": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        **{f"{CODE_OF}{module}": its for module, its in code.items()},
        **{f"{DATA_OF}{key}": its for key, its in data.items()},
    }


def differences(then: Mapping[str, Any], now: Mapping[str, str], *, scenario: bool = True) -> list[str]:
    """Return the differences between a run's recorded and present circumstances, as strings.

    Args:
        scenario: whether a changed scenario counts as a difference.
    """
    return [
        _difference(name, here, str(then.get(name)))
        for name, here in now.items()
        if then.get(name) != here and (scenario or name != SCENARIO)
    ]


def _difference(name: str, here: str, there: str) -> str:
    """Describe the change of a circumstance; for a scenario, name the keys that have changed."""
    if name != SCENARIO:
        return f"{name} is {here}, was {there}"
    try:
        now, then = (dict(leaves(yaml.safe_load(text))) for text in (here, there))
    except yaml.YAMLError:
        return f"{name} has changed, and is not YAML"
    keys = [key for key in {**then, **now} if now.get(key) != then.get(key)]
    shown = [f"{key} is {now.get(key)}, was {then.get(key)}" for key in keys[:KEYS_SHOWN]]
    more = f", and {len(keys) - KEYS_SHOWN} more keys" if len(keys) > KEYS_SHOWN else ""
    return f"{name}: {', '.join(shown) or 'its text has changed'}{more}"


def leaves(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys of a document with their values; empty mappings are values."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*keys, str(key)))
    else:
        yield ".".join(keys), value


PACKAGES = ("torch", "numpy", "scipy", "simpy")


@cache
def versions() -> dict[str, str]:
    """Return the version of each package that a run's results depend on, by the package's name."""
    return {package: version(package) for package in PACKAGES}
