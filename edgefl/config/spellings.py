"""American spellings of keys: `center_m` is read as `centre_m`, and the reader is told so, once."""

import logging
from collections.abc import Container, Mapping
from functools import cache
from typing import Any

BRITISH = {"center": "centre", "neighbor": "neighbour", "color": "colour", "optimizer": "optimiser"}

log = logging.getLogger(__name__)


def british(keys: Mapping[Any, Any], known: Container[str]) -> dict[Any, Any]:
    """Return a mapping whose keys are spelled as edgefl spells them, where that makes them known ones."""
    return {_known(key, known, keys): value for key, value in keys.items()}


def _known(key: Any, known: Container[str], given: Container[Any]) -> Any:
    if not isinstance(key, str) or key in known:
        return key
    ours = "_".join(BRITISH.get(word, word) for word in key.split("_"))
    if ours == key or ours not in known or ours in given:
        return key
    _tell(key, ours)
    return ours


@cache
def _tell(key: str, ours: str) -> None:
    log.warning("edgefl: note: %s is read as %s; write that to be rid of this note", key, ours)
