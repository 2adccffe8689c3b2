"""The requests that readers send to the engine."""

import asyncio
import os
import sys

import pytest

from tests.engines import READS, Engines
from tfmemtop.events import (
    Census,
    CensusNow,
    Environment,
    Functions,
    Notice,
    ReadEnvironment,
    Run,
)


async def test_a_command_that_cannot_be_read_is_told_and_does_no_harm(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    screen = await engines.look(launched.socket)
    _, writer = await asyncio.open_unix_connection(launched.socket)
    hostile = [b'{"do":"fly"}', b"\xff\xfe", b"[" * 100_000, b'{"do":"resize","columns":%d,"rows":1}' % 10**310]
    hostile += [b'{"do":"signal","pids":[%s],"signal":15}' % b",".join([b"0"] * 200_000)]
    hostile += [b'{"do":"stop","grace_s":1e300}', b'{"do":"map_wanted","pid":1,"device":"x","pace_s":-1}']
    writer.write(b"".join(line + b"\n" for line in hostile))

    def all_told(_: Notice) -> bool:
        return len({notice.detail for notice in screen.all(Notice) if notice.key == "command"}) == len(hostile)

    await screen.until(Notice, all_told)
    writer.write(b'{"do":"input","text":"after\\n"}\n')
    await screen.until_shown("got after")
    writer.close()


async def test_the_environment_of_a_process(engines: Engines) -> None:
    screen = await engines.python(READS, environment=dict(os.environ) | {"TF_SOMETHING": "set"})
    run = await screen.until(Run)
    await screen.until_shown("up")
    await screen.client.send(ReadEnvironment(pid=run.pid))
    found = await screen.until(Environment)
    assert (found.variables["TF_SOMETHING"], found.error) == ("set", None)
    await screen.client.send(ReadEnvironment(pid=2**22 + 1))
    gone = await screen.until(Environment, lambda environment: environment.pid != run.pid)
    assert gone.error


COUNTED = """
import sys
import tensorflow as tf
kept = tf.Variable(tf.zeros([1000]), name="kept")
step = tf.function(lambda x: x + 1)
result = step(step(step(kept)))
print("up", flush=True)
sys.stdin.readline()
"""


@pytest.mark.tensorflow
async def test_functions_and_a_census_when_asked(engines: Engines) -> None:
    screen = await engines.python(COUNTED)
    run = await screen.until(Run)
    await screen.until_shown("up")
    counted = await screen.until(Functions, lambda counted: counted.functions[0].calls == 3)
    assert [(f.name, f.traces, f.steps) for f in counted.functions] == [("<lambda>", 2, 1)]
    await screen.client.send(CensusNow(pid=run.pid))
    census = await screen.until(Census, lambda census: bool(census.kinds))
    assert census.kinds == {"CPU:0": {"variables": 4000}} and census.largest[0].name == "kept"
    await screen.client.send(CensusNow(pid=run.pid, tensors=True))
    looked = await screen.until(Census, lambda census: census.looked)
    assert [one.name for one in looked.largest if one.kind == "tensors"][:1] == ["result"] and looked.hidden is None
