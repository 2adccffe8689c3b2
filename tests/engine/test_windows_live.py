"""From TensorFlow to a screen: functions, variables, and the holders in the pool of a real script that trains."""

import os
import sys
from pathlib import Path

import pytest

from tests.engine.windows_read import Unpacked
from tests.engines import Engines
from tfmemtop import events

SCRIPT = """
import os, select, sys
os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = "64"
import tensorflow as tf

weight = tf.Variable(tf.zeros((1000, 500)), name="weight")


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.matmul(batch, weight, name="layer"))
        loss = tf.reduce_sum(hidden * hidden)
    weight.assign_sub(1e-9 * tape.gradient(loss, weight))
    return hidden


def train_until_told():
    while not select.select([sys.stdin], [], [], 0)[0]:
        train_step(batch)
    sys.stdin.readline()


batch = tf.ones((200, 1000))
train_until_told()
history = [train_step(batch) for _ in range(40)]
train_until_told()
while True:
    history.append(train_step(batch))
"""


def windows_left() -> list[Path]:
    """Return the window files in all sessions."""
    return list(Path(os.environ["XDG_RUNTIME_DIR"]).rglob("*.window"))


@pytest.mark.tensorflow
async def test_who_holds_what_of_a_script_that_trains_and_then_leaks_until_an_allocation_waits(
    engines: Engines, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    screen = await engines.run(sys.executable, "train.py")
    start = Unpacked(await screen.until(events.Holders, lambda event: event.steps is not None))
    pid = start.event.pid

    await screen.client.send(events.HoldersNow(pid=pid))
    asked = Unpacked(await screen.until(events.Holders, lambda event: event.opened is events.Opened.ASKED))
    trace = await screen.until(events.Trace)
    assert trace.whole and len(trace.steps) >= 3 and trace.lost == 0
    reading = await screen.until(events.Allocator, lambda event: event.t > asked.event.t)
    for found in (start, asked):
        event = found.event
        assert not event.is_missing and event.lost == 0
        assert found.total(event.peak_at) == event.peak == max(found.course())
        sizes = {(found.name(span) or "", found.holding(span).requested) for span in found.spans if span.begin >= 0}
        assert any(name and requested == 4 * 200 * 500 for name, requested in sizes)
        assert any("gradient_tape" in name and requested == 4 * 1000 * 500 for name, requested in sizes)
        assert event.peak <= (reading.peak or 0)
    counted = await screen.until(events.Functions, lambda counted: counted.functions[0].calls >= 3)
    assert [(one.name, one.traces) for one in counted.functions] == [("train_step", 1)]
    await screen.client.send(events.CensusNow(pid=pid))
    census = await screen.until(events.Census, lambda census: bool(census.kinds))
    assert census.kinds == {"CPU:0": {"variables": 4 * 1000 * 500}} and census.largest[0].name == "weight"
    await screen.client.send(events.CensusNow(pid=pid, tensors=True))
    looked = await screen.until(events.Census, lambda census: census.looked)
    assert [one.name for one in looked.largest if one.kind == "tensors"][:1] == ["batch"] and looked.hidden is None
    kept = {(span.address, found.name(span)) for found in (start,) for span in found.alive(-1)}
    assert kept & {(span.address, asked.name(span)) for span in asked.alive(-1)}

    # The script keeps some tensors, and trains on: a window follows the risen peak.
    leaks = screen.events[-1].t
    await screen.client.send(events.Input(text="\n"))
    risen = Unpacked(
        await screen.until(events.Holders, lambda event: event.opened is events.Opened.PEAK and event.t > leaks)
    )
    leaked = [risen.holding(span) for span in risen.spans if risen.holding(span).requested == 4 * 200 * 500]
    assert any(holding.shape == [200, 500] for holding in leaked)

    # From now on the script leaks. TensorFlow tries for ten seconds. The holders, the line and the map are published
    # before it gives up.
    await screen.client.send(events.Input(text="\n"))
    waiting = Unpacked(await screen.until(events.Holders, lambda event: event.opened is events.Opened.WAITING))
    where = await screen.until(events.Waiting)
    assert (Path(where.file).name, where.code) == ("train.py", "history.append(train_step(batch))")
    found_map = await screen.until(events.MemoryMap, lambda found: found.moment is events.MapMoment.OUT_OF_MEMORY)
    assert found_map.in_use > 48 << 20 and found_map.cells and not found_map.is_missing
    assert not screen.all(events.OutOfMemory)
    there = sum(waiting.holding(span).size for span in waiting.alive(waiting.event.peak_at))
    assert there == waiting.event.peak > 48 << 20
    await screen.client.send(events.Signal(pids=[pid], signal=9))
    await screen.until(events.RunEnd)
    assert not windows_left()
