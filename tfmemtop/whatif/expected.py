"""Collects what several tries recorded, to ask which largest value of a number in the command they let expect. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tfmemtop.events import Event, Hook, Replayed, Trace
from tfmemtop.events.device_names import is_pinned
from tfmemtop.whatif.asking import request
from tfmemtop.whatif.course import is_complete

WORKER = "tfmemtop.whatif.expecting"
"""The module that answers, in a process of its own."""

LONGEST_S = 120.0
"""How long it may take: about as long as a try."""


_LOST = 0.001
"""Of the events of a trace, the share that may be missing: what is expected is tried anyway."""


class Question(msgspec.Struct, frozen=True):
    """What is asked: from ``lowest`` to ``highest``, which values fit under ``limit`` bytes?

    ``tensorflow`` is the folder of the package, of that ``version``. ``values`` are those of the two runs whose traces
    follow, the smaller first, and ``parts`` is how many parts the first of them has.
    """

    tensorflow: str
    version: str
    growth: bool
    collects: bool
    limit: int
    lowest: int
    highest: int
    values: tuple[int, int]
    parts: int


class Expected(msgspec.Struct, frozen=True):
    """Up to ``surely`` every value is expected to pass, above ``at_most`` none; ``likely`` is the largest that does.

    ``values`` are those of the two runs that were replayed.
    """

    surely: int
    likely: int
    at_most: int
    values: tuple[int, int]


class _Tried(NamedTuple):
    """A try that passed with that ``value``; its trace, and how the pool was set."""

    value: int
    parts: Sequence[Trace]
    growth: bool
    collects: bool
    tensorflow: tuple[str, str]


class Expectations:
    """Takes the events of one try after the other, and makes the question."""

    def __init__(self, kind: str) -> None:
        """*kind* of the devices is ``GPU`` or ``CPU``."""
        self._kind = kind
        self._tried: list[_Tried] = []
        self.begin()

    def begin(self) -> None:
        """A try begins."""
        self._parts: dict[tuple[int, str], list[Trace]] = defaultdict(list)
        self._replayed: dict[tuple[int, str], Replayed] = {}
        self._tensorflow: dict[int, tuple[str, str]] = {}

    def take(self, event: Event) -> None:
        """An event of the try."""
        match event:
            case Hook() if event.tensorflow and event.tensorflow_path:
                self._tensorflow[event.pid] = event.tensorflow_path, event.tensorflow
            case Trace() if event.device.startswith(self._kind) and not is_pinned(event.device):
                self._parts[event.pid, event.device].append(event)
            case Replayed() if event.device.startswith(self._kind):
                self._replayed[event.pid, event.device] = event
            case _:
                pass

    def passed(self, value: int) -> None:
        """The try under way has passed with that *value*. It counts if one pool alone was used, and was replayed."""
        if len(self._replayed) != 1:
            return
        ((key, replayed),) = self._replayed.items()
        parts, present = self._parts.get(key, []), replayed.present
        if (
            present is None
            or replayed.lost > _LOST * replayed.events
            or not is_complete(parts)
            or key[0] not in self._tensorflow
        ):
            return
        self._tried.append(_Tried(value, parts, present.growth, present.collects, self._tensorflow[key[0]]))

    def request(self, limit: int, lowest: int, highest: int) -> bytes | None:
        """What the worker reads; ``None`` if less than two tries tell."""
        tried = sorted(self._tried, key=lambda one: one.value)
        if len(tried) < 2:
            return None
        *others, larger = tried
        # Values that are far apart tell best what grows; but a very small one may be treated in another way.
        smaller = next((one for one in others if one.value * 4 >= larger.value), others[-1])
        asked = Question(
            *larger.tensorflow,
            growth=larger.growth,
            collects=larger.collects,
            limit=limit,
            lowest=lowest,
            highest=highest,
            values=(smaller.value, larger.value),
            parts=len(smaller.parts),
        )
        return request(asked, [*smaller.parts, *larger.parts])


def answered(output: bytes | None) -> Expected | None:
    """What the worker said; ``None`` if it has no answer."""
    try:
        return msgspec.json.decode((output or b"").strip(), type=Expected)
    except msgspec.MsgspecError:
        return None
