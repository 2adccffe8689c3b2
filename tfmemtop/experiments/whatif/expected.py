"""Collects the traces of several tries, and asks for the largest value of a number in the command that fits. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tfmemtop.events import Event, Hook, Replayed, Trace
from tfmemtop.events.device_names import is_pinned
from tfmemtop.experiments.whatif.course import is_complete
from tfmemtop.experiments.whatif.worker_protocol import request

WORKER = "tfmemtop.experiments.whatif.expected_worker"
"""The module that answers, in a separate process."""

LONGEST_S = 120.0
"""How long the answer may take: about as long as a try."""


_LOST = 0.001
"""The share of a trace's events that may be missing. The expected value is tried in a real run anyway."""


class Question(msgspec.Struct, frozen=True):
    """The question: from ``lowest`` to ``highest``, which values fit under ``limit`` bytes?

    ``tensorflow`` is the folder of the package, and ``version`` its version. ``growth`` and ``collects`` are the pool's
    setting. ``values`` are those of the two runs whose traces follow, the smaller value first. ``parts`` is the number
    of parts of the first trace.
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
    """The expected values: up to ``surely`` every value should pass, and above ``at_most`` none.

    ``likely`` is the largest value that is likely to pass. ``values`` are those of the two runs that were replayed.
    """

    surely: int
    likely: int
    at_most: int
    values: tuple[int, int]


class _Tried(NamedTuple):
    """A try that passed with ``value``: the parts of its trace, and the setting of its pool."""

    value: int
    parts: Sequence[Trace]
    growth: bool
    collects: bool
    tensorflow: tuple[str, str]


class Expectations:
    """Takes the events of one try after another, and makes the question."""

    def __init__(self, kind: str) -> None:
        """*kind* is the kind of the devices: ``GPU`` or ``CPU``."""
        self._kind = kind
        self._tried: list[_Tried] = []
        self.begin()

    def begin(self) -> None:
        """Begin a new try."""
        self._parts: dict[tuple[int, str], list[Trace]] = defaultdict(list)
        self._replayed: dict[tuple[int, str], Replayed] = {}
        self._tensorflow: dict[int, tuple[str, str]] = {}

    def take(self, event: Event) -> None:
        """Take an event of the present try."""
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
        """Note that the present try has passed with *value*. It counts if its only pool was traced and replayed."""
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
        """Return the text that the worker reads; ``None`` if fewer than two tries count."""
        tried = sorted(self._tried, key=lambda one: one.value)
        if len(tried) < 2:
            return None
        *others, larger = tried
        # Values that are far apart show best what grows. But TensorFlow may treat a very small value in another way.
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
    """Return the answer in the worker's *output*; ``None`` if there is none."""
    try:
        return msgspec.json.decode((output or b"").strip(), type=Expected)
    except msgspec.MsgspecError:
        return None
