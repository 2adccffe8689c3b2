"""Rules for the events that readers need that connect late: each class of events declares one rule as its ``keep``.

The backlog of the engine holds events by these rules, so its memory stays bounded however long a session is.
``by`` names the fields or properties that make the key: ``Latest("pid")`` keeps one event for each process.
If the first of them is ``pid``, the events of a process are dropped some time after it has ended.
"""

from collections.abc import Callable, Hashable
from operator import attrgetter


class Keep:
    """The base of the rules. Without ``by`` all events of the class have the same key."""

    def __init__(self, *by: str) -> None:
        self.by = by
        self.key: Callable[[object], Hashable] = attrgetter(*by) if by else lambda _: None
        """A function that returns the key of an event."""


class Nothing(Keep):
    """No event: readers that connect late do not receive these events."""


class Latest(Keep):
    """The latest event of each key. With ``most``, only that number of keys: those that were updated last."""

    def __init__(self, *by: str, most: int | None = None) -> None:
        super().__init__(*by)
        self.most = most


class Newest(Keep):
    """The newest ``count`` events of each key. With ``first``, also the very first.

    With ``first``, only the first and the last are kept once the process has ended.
    """

    def __init__(self, count: int, *by: str, first: bool = False) -> None:
        super().__init__(*by)
        self.count = count
        self.first = first


class Curve(Keep):
    """The newest event of each key, and a few hundred over the whole time, each the highest of its stretch of time.

    The height of an event is the highest value of its fields ``highest``. Of older events, the backlog keeps what
    their method ``past`` returns.
    """

    def __init__(self, *by: str, highest: tuple[str, ...]) -> None:
        super().__init__(*by)
        self.highest = highest

    def height(self, event: object) -> int:
        """Return the height of *event*."""
        return max(getattr(event, name) or 0 for name in self.highest)


class Tail(Keep):
    """The last ``characters`` of the script's output. Short events are joined."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.characters = characters
