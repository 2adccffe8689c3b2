"""Small streams for the rules: a run on one H200, as the events that an engine would send, and its findings."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from tests import streams as s
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.finding import DeviceFinding, Finding
from tfmemtop.findings.judgement import findings
from tfmemtop.findings.names import place_name
from tfmemtop.findings.remedy import Remedy
from tfmemtop.settings import Settings

F = TypeVar("F", bound=Finding)

CARD = 140 * GIB
POOL_AT_ONCE = 140_829 * MIB  # what TensorFlow took of an H200 with growth off


def begin(
    settings: Settings | None = None, others: int = 0, gpus: int = 1, command: str = "python train.py"
) -> list[events.Event]:
    """Return a run of process 100, which has imported TensorFlow. Before it, another held *others* bytes of GPU 0."""
    held: dict[int, int | None] = {900: others} if others else {}
    return [
        s.session(),
        *(s.device(index, CARD) for index in range(gpus)),
        s.process(0.3, 900, run=None, command="python other.py"),
        s.run(0.4, settings=settings),
        s.device_reading(0.5, held),
        s.process(0.6, 100, command=command),
        s.alive(1.0, 100, 900),
        s.hook(1.1, 100),
    ]


def effective(
    growth: bool | None,
    limit: int | None = None,
    t: float = 2.0,
    pid: int = 100,
    name: str = "GPU:0",
    allocator: str = "bfc",
    uuid: str = "GPU-0",
) -> events.Effective:
    made = s.effective(t, pid, name, uuid, limit)
    return msgspec.structs.replace(made, physical=int(name[-1]), growth=growth, allocator=allocator)


def limited(growth: bool | None, limit: int, t: float = 2.0, name: str = "GPU:0") -> list[events.Event]:
    """Return a limit that the script asked for, and that is in effect."""
    return [asked_limits(limit, name=name, t=t - 0.1), effective(growth, limit, t, name=name)]


def reading(
    t: float,
    in_use: int,
    peak: int | None = None,
    pool: int | None = None,
    limit: int | None = None,
    pid: int = 100,
    name: str = "GPU:0",
    high: int | None = None,
) -> events.Allocator:
    plain = s.allocator(t, pid, in_use, peak, pool, name)
    return msgspec.structs.replace(plain, limit=limit, high=high)


def busy(
    percent: dict[int, int],
    held: dict[int, int | None],
    seconds: int = 50,
    missing: events.SharesMissing | None = None,
    cpu: float = 620.0,
) -> list[events.Event]:
    """Return readings once a second of a script that keeps six cores busy, or uses *cpu* percent of one.

    *percent* is the utilisation of each GPU, *held* the bytes that each process holds on each of them.
    """
    stream: list[events.Event] = []
    for t in range(3, 3 + seconds):
        for index, share in percent.items():
            card = s.device_reading(float(t), held, index, missing)
            stream.append(msgspec.structs.replace(card, utilisation=share))
        workers = [events.ProcessReading(100, cpu, GIB), events.ProcessReading(900, 0.0, GIB)]
        stream.append(events.ProcessReadings(t=float(t), processes=workers))
    return stream


def steady(
    until: float, in_use: int, peak: int, pool: int | None, since: float = 3.0, limit: int | None = None
) -> list[events.Event]:
    """Return readings once a second that are all alike."""
    return [reading(since + i, in_use, peak, pool, limit) for i in range(int(until - since) + 1)]


def asked_growth(
    name: str = "GPU:0", on: bool = True, error: str | None = None, line: int = 12, t: float = 1.5, pid: int = 100
) -> events.Requested:
    """The script asks for growth, or against it."""
    return s.requested(t, events.Call.SET_MEMORY_GROWTH, [name], pid, growth=on, error=error, line=line)


def asked_limits(
    *limits: int | None, name: str = "GPU:0", error: str | None = None, line: int = 12, t: float = 1.5, pid: int = 100
) -> events.Requested:
    """The script asks for logical devices with these limits, in bytes."""
    call = events.Call.SET_LOGICAL_DEVICE_CONFIGURATION
    return s.requested(t, call, [name], pid, limits=list(limits), error=error, line=line)


def asked_visible(
    *names: str, of: str | None = "GPU", error: str | None = None, line: int = 12, t: float = 1.5, pid: int = 100
) -> events.Requested:
    """The script asks for these devices alone to be visible."""
    call = events.Call.SET_VISIBLE_DEVICES
    return s.requested(t, call, list(names), pid, device_type=of, error=error, line=line)


def initialised(
    line: int = 9, code: str = "x = tf.ones(3)", error: str | None = None, t: float = 1.4, **variables: str
) -> events.Initialised:
    return events.Initialised(
        t=t, pid=100, file="/home/ada/train.py", line=line, code=code, error=error, variables=variables
    )


def wrote(text: str, t: float = 1.6) -> events.Output:
    return events.Output(t=t, run=1, text=text)


class Found:
    """A list of findings. One is picked by its class; the whole is equal to a plain list of the same findings."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings

    def __repr__(self) -> str:
        return repr(self.findings)

    def __eq__(self, other: object) -> bool:
        return self.findings == other

    def __getitem__(self, kind: type[F]) -> F:
        """The one finding of class *kind*."""
        (one,) = [finding for finding in self.findings if isinstance(finding, kind)]
        return one

    def __contains__(self, kind: type[Finding]) -> bool:
        return any(isinstance(finding, kind) for finding in self.findings)

    def text(self, kind: type[Finding]) -> str:
        return self[kind].said.text


def actions(finding: Finding) -> list[Remedy]:
    """Return the finding's remedies."""
    return list(finding.remedies)


def found(*parts: Iterable[events.Event] | events.Event) -> Found:
    """Return the findings after the events of *parts*. Check that each has a text with a full stop at its end."""
    stream: list[events.Event] = []
    for part in parts:
        if isinstance(part, events.Event):
            stream.append(part)
        else:
            stream += part
    after = findings(s.fold(stream))
    for finding in after:
        text = finding.said.text
        assert text.endswith(".")
        assert not isinstance(finding, DeviceFinding) or text.startswith(place_name(finding.place))
    return Found(after)


HEALTHY: list[events.Event] = [
    *begin(),
    asked_growth(),
    effective(True),
    s.device_reading(3.0, {100: 522 * MIB}),
    *steady(90.0, 700 * MIB, 800 * MIB, 1026 * MIB, limit=139 * GIB),
    s.device_reading(90.0, {100: 1634 * MIB}),
]
"""A run with growth on, a pool that is mostly in use, and the usual memory of the process outside it."""
