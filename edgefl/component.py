"""What every pluggable part of a scenario has in common."""

from pydantic import BaseModel, ConfigDict


class Component(BaseModel):
    """Frozen, validated parameters plus one or two methods.

    A component is named in YAML by its file: `algorithm: {name: fedprox, mu: 1.0}` is the class in
    `edgefl/learning/algorithms/fedprox.py`. State is passed in and handed back; the random generator
    is an argument.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
