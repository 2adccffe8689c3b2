"""The base class of all events, and what each class of events declares about itself.

How to add an event
-------------------
Suppose that the hook shall report how long each garbage collection took. Write one class, in ``hook.py``::

    class Collected(Event, tag="collected", frozen=True):
        \"""Python's garbage collector has run in a process.\"""

        origin = Origin.HOOK
        keep = Newest(50, "pid")
        droppable = True

        pid: Number
        took_us: Size

and one handler, in ``state/fold.py`` or ``fold_memory.py``, that stores it in the state::

    @folds(events.Collected)
    def _collected(state: State, event: events.Collected) -> None:
        if hooked := hooked_of(state, event.pid):
            hooked.collected.append(event)

No other code lists events:

- ``origin`` lets the hook send it. The hook's listener refuses events that a hook may not send, and fills in ``pid``
  and ``t`` itself.
- ``keep`` defines which events the backlog holds for readers that connect later: here the newest 50 of each process.
- ``droppable`` lets the server leave the oldest ones out for a reader that is too slow.
- With ``once``, a recording does not repeat the event at the beginning of each chunk.
- Override ``recorded`` if the event contains something private, such as an environment.
- Decoding, recordings and ``from tfmemtop.events import Collected`` follow from the class.

Every field needs a bounded type from ``tfmemtop/bounds.py``. People who read recordings find each event in
``help/formats.md``, so a test asks for a row there. ``tests/events/test_declared.py`` checks the declarations. It also
sends an event that only the test knows through hook, stream, backlog, readers, recording and fold.
"""

from collections.abc import Callable, Hashable
from enum import Enum
from operator import attrgetter
from typing import ClassVar

import msgspec

from tfmemtop.bounds import Seconds


class DescribedEnum(Enum):
    """The base of enumerations with a text for people beside the value that is sent.

    A member is ``NAME = value, text``, or ``NAME = value, text, remedy``.
    """

    text: str
    remedy: str
    """What helps; may be empty."""
    _value_: str

    def __new__(cls, value: str, text: str = "", remedy: str = "") -> "DescribedEnum":
        member = object.__new__(cls)
        member._value_ = value
        member.text, member.remedy = text, remedy
        return member


class Keep:
    """A rule for the events that readers need that connect late: each class of events declares one as its ``keep``.

    The backlog of the engine holds events by these rules, so its memory stays bounded however long a session is.
    ``by`` names the fields or properties that make the key: ``Latest("pid")`` keeps one event for each process. If the
    first of them is ``pid``, the events of a process are dropped some time after it has ended. Without ``by`` all
    events of the class have the same key.
    """

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

    With ``highest``, the name of a field, also that in which this is highest. With ``first``, only the first, the
    highest and the last are kept once the process has ended.
    """

    def __init__(self, count: int, *by: str, first: bool = False, highest: str = "") -> None:
        super().__init__(*by)
        self.count = count
        self.first = first
        self.highest = highest


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


FORMAT = 3
"""The version of the stream's format. A recording of another one is refused."""


class Origin(Enum):
    """Which part of tfmemtop may make events of a class."""

    ENGINE = "engine"
    HOOK = "hook"  # the hook and the engine; such an event always has a `pid`


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """The base of all events. The attributes before ``t`` belong to the class and are not sent."""

    origin: ClassVar[Origin] = Origin.ENGINE
    keep: ClassVar[Keep]
    """Which events of this class the backlog keeps for readers that connect later."""
    urgent: ClassVar[bool] = False
    """Whether the screen draws the event at once. Other events wait for the next frame."""
    droppable: ClassVar[bool] = False
    """Whether the event is one of many readings.

    It may wait a moment to be sent with others, and slow readers may not receive it.
    """

    once: ClassVar[bool] = False
    """Whether the event is too large to be repeated in a recording.

    Where a recording repeats other events, it only notes the place of this one.
    """

    t: Seconds

    def recorded(self) -> "Event":
        """Return the event as a recording keeps it: whole, unless the class leaves out what is private."""
        return self

    def past(self, ours: Callable[[int], bool]) -> "Event":
        """Return the event as a :class:`Curve` keeps it once a newer one has come.

        *ours* takes a pid and returns whether that process belongs to a run.
        """
        return self


def event_types(origin: Origin | None = None) -> tuple[type[Event], ...]:
    """Return all classes of events; with *origin*, only those that declare it."""
    return tuple(kind for kind in Event.__subclasses__() if origin in (None, kind.origin))
