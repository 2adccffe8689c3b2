"""A long session, made from a part of a real one on an H200: one GPU, one script, 10 readings and a map a second."""

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.events.recording import read

DAY_S = 86_400
_REAL = Path(__file__).parents[2] / "recordings" / "h200-runs.jsonl"
RUN = 2
"""The run of that recording that is used: a Keras training with growth on. Both of its pools have maps."""


def session(seconds: float) -> Iterator[events.Event]:
    """Yield the session's beginning, then its steady part over and over, and its end after *seconds*.

    Counters and times go on from one round to the next. Sizes repeat in each round. This does not make the recording
    smaller: a round has 300 kB, and gzip finds repetitions only within 32 kB.
    """
    real = list(read(_REAL).events())
    last = next(event.t for event in real if isinstance(event, events.Run) and event.run == RUN)
    hello = next(event.t for event in real if isinstance(event, events.Functions) and event.t > last)
    end = next(event.t for event in real if isinstance(event, events.RunEnd) and event.run == RUN)
    for event in real:
        if isinstance(event, (events.Session, events.Device, events.Terminal)):
            yield replace(event, t=0.0)
    first = replace(real[0], t=0.0)
    assert isinstance(first, events.Session)
    yield from (replace(event, t=event.t - last) for event in real if last <= event.t < hello)
    left_out = (events.Census, events.PoolGrowth, events.Output, events.Environment)  # once only, or not with `record`
    stretch = [event for event in real if hello <= event.t < end - 3 and not isinstance(event, left_out)]
    span, round_ = end - 3 - hello, 0
    calls = max(sum(each.calls for each in event.functions) for event in stretch if isinstance(event, events.Functions))
    made = _made(stretch)
    while True:
        at = hello - last + round_ * span
        for event in stretch:
            t = round(event.t - hello + at, 6)
            if t > seconds:
                yield events.RunEnd(t=t, run=RUN, exit_code=0, signal=None)
                return
            yield _again(event, t, round_, made, calls)
        round_ += 1


def _made(stretch: list[events.Event]) -> int:
    counts = [event.allocations or 0 for event in stretch if isinstance(event, events.Allocator)]
    return max(counts)


def _again(event: events.Event, t: float, round_: int, made: int, calls: int) -> events.Event:
    match event:
        case events.Allocator(allocations=int(count)):
            return replace(event, t=t, allocations=count + made * round_)
        case events.Functions():
            grown = [replace(each, calls=each.calls + calls * round_) for each in event.functions]
            return replace(event, t=t, functions=grown)
        case _:
            return replace(event, t=t)
