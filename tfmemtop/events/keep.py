"""What readers that come late need of the events of a class: each class declares one of these as its ``keep``.

The backlog of the engine holds events by these rules, so its memory stays bounded however long a session is.
``by`` names the fields or properties that make the key: ``Latest("pid")`` keeps one event for each process.
What is kept by ``pid`` first is dropped some time after the process has ended.
"""

from collections.abc import Callable, Hashable
from operator import attrgetter


class Keep:
    """Base of the rules. Without ``by`` all events of the class have the same key."""

    def __init__(self, *by: str) -> None:
        self.by = by
        self.key: Callable[[object], Hashable] = attrgetter(*by) if by else lambda _: None
        """The key of an event."""


class Nothing(Keep):
    """Late readers do without these events."""


class Latest(Keep):
    """The latest event of each key. With ``most``, of those keys only that were updated last."""

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
    """A few hundred events of each key over the whole time, each the highest of its stretch, and the newest.

    An event is as high as the highest of its fields ``highest``. Older events are kept as their ``past`` has them.
    """

    def __init__(self, *by: str, highest: tuple[str, ...]) -> None:
        super().__init__(*by)
        self.highest = highest


class Tail(Keep):
    """The last ``characters`` of the script's output. Short events are joined."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.characters = characters
