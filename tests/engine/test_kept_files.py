"""The files of a session: which users may read them, how long they are kept, and what happens if the disk is full.

Its log stays bounded, however much a driver writes into it.
"""

import os
import resource
import stat
import sys
import time
from pathlib import Path

import psutil

from tests.engines import READS, Engines, eventually
from tests.own_sessions import own_sessions
from tfmemtop.events import Input, Notice


async def test_only_the_user_can_enter(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    folder = Path(launched.socket).parent
    screen = await engines.look(launched.socket)
    await screen.until_shown("up")
    assert _mode(folder) == _mode(folder.parent) == 0o700
    assert _mode(folder / "hook.sock") == _mode(folder / "engine.sock") == 0o600
    output = Path(launched.output_path or "")
    await eventually(output.exists)
    assert _mode(output) == 0o600


async def test_outputs_are_kept_for_a_month(engines: Engines) -> None:
    silent = engines.launch(sys.executable, "-u", "-c", READS)
    await (await engines.look(silent.socket)).until_shown("up")
    assert silent.output_path is not None
    kept = Path(silent.output_path)
    for name, days in (("old.log", 31), ("old.engine.log", 31), ("recent.log", 29), ("not-ours", 31), (kept.name, 31)):
        path = kept.parent / name
        path.touch()
        at = time.time() - days * 86400
        os.utime(path, (at, at))
    await (await engines.python("print('up')")).until_shown("up")
    await eventually(lambda: not list(kept.parent.glob("old*")))
    assert {path.name for path in kept.parent.iterdir()} >= {"recent.log", "not-ours", kept.name}


async def test_a_full_disk_costs_the_recording_and_not_the_run(engines: Engines) -> None:
    screen = await engines.python(READS, record="/dev/full")
    notice = await screen.until(Notice, lambda notice: notice.key == "recording")
    assert "No space left" in notice.detail
    await screen.client.send(Input(text="on\n"))
    await screen.until_shown("got on")


async def test_a_full_disk_costs_the_output_file_and_not_the_output(engines: Engines) -> None:
    screen = await engines.python("input()\nprint('x' * 3_000_000)\nprint('on')\ninput()")
    # A limit on the size of files has the same effect as a full disk. The keeper, the engine's parent, writes the file.
    keeper = psutil.Process(own_sessions()[0].pid).ppid()
    resource.prlimit(keeper, resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    await screen.client.send(Input(text="\n"))
    notice = await screen.until(Notice, lambda notice: notice.key == "output_file")
    assert "File too large" in notice.detail
    await screen.until_shown("on\r\n")


async def test_a_recording_that_cannot_be_made_is_refused_before_the_start(engines: Engines) -> None:
    launched = engines.launch("touch", "started", record="/no/such/folder/file")
    assert launched.error is not None
    assert launched.exit_code == 2
    assert "/no/such/folder/file" in launched.error
    assert not [*engines.folder.glob("started")]


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
