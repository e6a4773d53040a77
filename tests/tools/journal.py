"""Give test scenarios the journal's radio, whose times can be derived by hand."""

from typing import Any


def with_journal(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario whose radio has the preset `journal`, unless it names one."""
    return {**scenario, "radio": {"preset": "journal", **(scenario.get("radio") or {})}}
