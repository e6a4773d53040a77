"""Rounds one after the other."""

from edgefl.engine.servers import ServerPolicy


class Synchronous(ServerPolicy):
    """All participants begin with the same model, and the next round begins when the last one's model is made.

    McMahan et al., AISTATS 2017. Until when a round waits is said by `rounds.deadline_s`, `over_selection` and
    `min_updates`; who is late then is cut off, and its update lost.
    """
