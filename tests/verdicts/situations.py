"""Small streams for the rules: a run on one H200, as the events an engine would send, and what is found."""

from collections.abc import Iterable

import msgspec

from tests import streams as s
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.settings import Settings
from tfmemtop.verdicts import Finding, findings

CARD = 140 * GIB
POOL_AT_ONCE = 140_829 * MIB  # what TensorFlow took of an H200 with growth off


def begin(
    settings: Settings | None = None, others: int = 0, gpus: int = 1, command: str = "python train.py"
) -> list[events.AnyEvent]:
    """A run of process 100 that has imported TensorFlow; others held *others* bytes of GPU 0 before it."""
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
    physical = int(name[-1])
    return events.Effective(
        t=t,
        pid=pid,
        device=name,
        physical=physical,
        uuid=uuid,
        growth=growth,
        limit=limit,
        allocator=allocator,
    )


def limited(growth: bool | None, limit: int, t: float = 2.0, name: str = "GPU:0") -> list[events.AnyEvent]:
    """A limit that the script asked for, and has."""
    call = asked("set_logical_device_configuration", f"{name}, [(memory_limit={limit / MIB:.0f})]", t=t - 0.1)
    return [call, effective(growth, limit, t, name=name)]


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


def steady(
    until: float, in_use: int, peak: int, pool: int | None, since: float = 3.0, limit: int | None = None
) -> list[events.AnyEvent]:
    """Readings once a second that are all alike."""
    return [reading(since + i, in_use, peak, pool, limit) for i in range(int(until - since) + 1)]


def asked(
    call: str, arguments: str, error: str | None = None, line: int = 12, t: float = 1.5, pid: int = 100
) -> events.Requested:
    return events.Requested(
        t=t, pid=pid, call=call, arguments=arguments, file="/home/ada/train.py", line=line, error=error
    )


def initialised(
    line: int = 9, code: str = "x = tf.ones(3)", error: str | None = None, t: float = 1.4, **variables: str
) -> events.Initialised:
    return events.Initialised(
        t=t, pid=100, file="/home/ada/train.py", line=line, code=code, error=error, variables=variables
    )


def wrote(text: str, t: float = 1.6) -> events.Output:
    return events.Output(t=t, run=1, text=text)


def found(*parts: Iterable[events.AnyEvent] | events.AnyEvent) -> dict[str, Finding]:
    """The findings after the events of *parts*, by key; none may lack a key or a final stop."""
    stream: list[events.AnyEvent] = []
    for part in parts:
        if isinstance(part, events.Event):
            stream.append(part)
        else:
            stream += part
    after = findings(s.fold(stream))
    assert all(finding.key and finding.text.endswith(".") for finding in after)
    assert all(finding.text.startswith(finding.place) for finding in after)
    return {finding.key: finding for finding in after}


HEALTHY: list[events.AnyEvent] = [
    *begin(),
    asked("set_memory_growth", "GPU:0, True"),
    effective(True),
    s.device_reading(3.0, {100: 522 * MIB}),
    *steady(90.0, 700 * MIB, 800 * MIB, 1026 * MIB, limit=139 * GIB),
    s.device_reading(90.0, {100: 1634 * MIB}),
]
"""Growth on, a pool that is mostly in use, the usual beside it."""
