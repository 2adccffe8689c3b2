"""The requests that readers send to the engine."""

import asyncio
import os
import sys

from tests.engines import READS, Engines
from tfmemtop.events import (
    Environment,
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
