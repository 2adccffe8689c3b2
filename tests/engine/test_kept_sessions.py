"""The recordings kept of sessions: one of each session, wherever its file is, and none of them for ever."""

import os
import stat
import sys
import time
from pathlib import Path

from tests.engines import READS, Engines, eventually
from tfmemtop.engine.stream.kept_sessions import forget_old, is_written, kept_recordings
from tfmemtop.events import Input, Notice, NoticeKind, Output, Run, RunEnd, Session, Stop
from tfmemtop.events.recording import Writer, read


async def test_a_session_is_recorded_of_itself(engines: Engines) -> None:
    screen = await engines.run("sh", "-c", "echo recorded; read line; exit 4", keep=True)
    await screen.until_shown("recorded")
    session = await screen.until(Session)
    await eventually(lambda: session.id in kept_recordings())
    path = kept_recordings()[session.id]
    await eventually(lambda: is_written(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await screen.client.send(Input(text="\n"))
    await screen.until(RunEnd)
    await screen.client.send(Stop(quit=True))
    await screen.until_closed()
    assert not is_written(path)
    recording = read(path)
    found = list(recording.events())
    assert recording.session == session
    kinds = [event for event in found if isinstance(event, (Run, RunEnd))]
    assert [type(event) for event in kinds] == [Run, RunEnd]
    assert "recorded" in "".join(event.text for event in found if isinstance(event, Output))


async def test_one_that_is_recorded_to_a_file_is_found_there(engines: Engines) -> None:
    path = engines.folder / "mine.jsonl"
    screen = await engines.run("true", keep=True, record=str(path))
    session = await screen.until(Session)
    await screen.until(RunEnd)
    await screen.client.send(Stop(quit=True))
    await screen.until_closed()
    assert kept_recordings()[session.id].resolve() == path
    path.unlink()
    assert kept_recordings() == {}


async def test_where_there_is_no_place_one_notice_says_so_and_the_run_goes_on(engines: Engines) -> None:
    os.close(os.open(os.environ["XDG_STATE_HOME"], os.O_CREAT))  # a file where the folder should be
    screen = await engines.run(sys.executable, "-u", "-c", READS, keep=True)
    notice = await screen.until(Notice, lambda notice: notice.kind is NoticeKind.RECORDING_ENDED)
    assert "Not a directory" in notice.detail or "exists" in notice.detail
    await screen.client.send(Input(text="on\n"))
    await screen.until_shown("got on")


def test_they_go_after_a_month_or_when_they_are_too_many(engines: Engines) -> None:
    folder = Path(os.environ["XDG_STATE_HOME"]) / "tfmemtop"
    folder.mkdir(parents=True)
    now = time.time()

    def put(name: str, days: float, size: int = 10) -> Path:
        path = folder / f"{name}.jsonl.gz"
        path.write_bytes(bytes(size))
        os.utime(path, (now - days * 86_400,) * 2)
        return path

    for name, days in (("new", 0), ("week", 7), ("month", 29), ("old", 31)):
        put(name, days)
    going = put("going", 40, 0)
    lost, elsewhere = folder / "lost.jsonl.gz", folder / "elsewhere.jsonl.gz"
    lost.symlink_to(folder / "nothing")
    far = folder.parent / "far.gz"
    far.write_bytes(bytes(10_000))
    elsewhere.symlink_to(far)
    (folder / "not-ours.txt").touch()
    writer = Writer(going)
    os.utime(going, (now - 40 * 86_400,) * 2)
    forget_old()
    assert set(kept_recordings()) == {"new", "week", "month", "going", "elsewhere"}
    assert not lost.is_symlink()
    forget_old(size=elsewhere.lstat().st_size + 25)  # a link counts with its own size
    assert set(kept_recordings()) == {"new", "week", "going", "elsewhere"}
    writer.close()
    assert far.exists()
    assert (folder / "not-ours.txt").exists()
