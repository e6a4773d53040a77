"""List the components of a kind that are missing from a table of derived examples."""

from collections.abc import Iterable

from edgefl.config import registry
from edgefl.config.component import AnyComponent


def underived(kind: str, derived: Iterable[AnyComponent]) -> list[str]:
    """Return the names of the kind's components that have no derivation."""
    return sorted({*registry.names(kind)} - {registry.name_of(kind, component) for component in derived})
