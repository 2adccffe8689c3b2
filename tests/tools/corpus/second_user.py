"""Another user of the same machine: what of a session that user can reach, read, or obstruct."""

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.tools.corpus.box import Box
from tests.tools.corpus.running import left_behind
from tests.tools.corpus.script import sh
from tests.tools.corpus.terminals import Screen, SecondReader
from tests.tools.corpus.trial import TFMEMTOP

SOMEBODY = 65534
_LOOK_S = 0.02
_LIMIT_S = 20.0
_SCRIPT = sh("other", "waits to be ended", "echo secret; touch {box}/ran; sleep 60")


def _as_somebody(work: Callable[[], str]) -> str:
    """Return what *work* returns when another user calls it; "" if it is not permitted."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "it failed"
        try:
            os.setgroups([])
            os.setresgid(SOMEBODY, SOMEBODY, SOMEBODY)
            os.setresuid(SOMEBODY, SOMEBODY, SOMEBODY)
            said = work()
        except PermissionError:
            said = ""
        except Exception as error:
            said = f"{error!r}"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said_there:
        text = said_there.read()
    os.waitpid(pid, 0)
    return text


class _Session:
    """A live session of ours. Every user may enter the folders above the session's own."""

    def __init__(self, box: Box) -> None:
        box.prepare(_SCRIPT)
        self.box = box
        self.screen = Screen(
            [*TFMEMTOP, "--record", str(box.path / "run.jsonl"), "--", *box.command(_SCRIPT)],
            box.environment(_SCRIPT),
            box.path / "cwd",
        )
        self.course = SecondReader(box.path / "run")
        until = time.monotonic() + _LIMIT_S
        while not (self.course.reached and (box.path / "ran").exists()) and time.monotonic() < until:
            self.screen.draw(_LOOK_S)
            self.course.look()
        self.folder = next((box.path / "run" / "tfmemtop").glob("*/"), None)
        for folder in (box.path.parent, box.path, box.path / "run", box.path / "state", box.path / "home"):
            folder.chmod(0o755)

    def goes_on(self) -> bool:
        """Return whether the run still goes on after a second."""
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            self.screen.draw(_LOOK_S)
            self.course.look()
        return self.course.end is None

    def close(self) -> None:
        """End the session."""
        self.course.close()
        self.screen.close()
        left_behind(None)


def reach(box: Box) -> list[str]:
    """The other user tries to connect to the sockets, list the folder, and read output and recording."""
    session = _Session(box)
    try:
        if session.folder is None:
            return ["there is no session"]
        folder = session.folder
        troubles = []
        for name in ("engine.sock", "hook.sock"):
            kind = socket.SOCK_STREAM if name.startswith("engine") else socket.SOCK_SEQPACKET
            if said := _as_somebody(lambda path=str(folder / name), kind=kind: _connect(path, kind)):  # type: ignore[misc]
                troubles.append(f"{name}: {said}")
        readable = {
            "the folder of sessions": lambda: "listed" if os.listdir(folder.parent) else "",  # noqa: PTH208
            "the recording": lambda: "read" if (box.path / "run.jsonl").read_bytes() else "",
            "the output": lambda: (
                "read" if any(path.read_bytes() for path in (box.path / "state" / "tfmemtop").iterdir()) else ""
            ),
        }
        troubles += [f"{what}: {said}" for what, work in readable.items() if (said := _as_somebody(work))]
        for path in (folder, folder.parent):
            if (mode := stat.S_IMODE(path.stat().st_mode)) != 0o700:
                troubles.append(f"{path.name} is {mode:o}")
        return troubles
    finally:
        session.close()


def _connect(path: str, kind: socket.SocketKind) -> str:
    with socket.socket(socket.AF_UNIX, kind) as line:
        line.settimeout(2)
        line.connect(path)
        return "connected"


def commands(box: Box) -> list[str]:
    """Even with folders and sockets open, the other user receives nothing, and the engine executes no command."""
    session = _Session(box)
    try:
        if session.folder is None:
            return ["there is no session"]
        folder = session.folder
        for path in (folder.parent, folder):
            path.chmod(0o777)
        for name in ("engine.sock", "hook.sock"):
            (folder / name).chmod(0o777)

        def ask() -> str:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(2)
                line.connect(str(folder / "engine.sock"))
                with suppress(OSError):
                    line.sendall(b'{"do":"stop","grace_s":0.1,"quit":true}\n')
                    return "he was told of the run" if line.recv(4096) else ""
            return ""

        troubles = [said] if (said := _as_somebody(ask)) else []
        if not session.goes_on():
            troubles.append("he could end the run")
        return troubles
    finally:
        session.close()


def stands_in_the_way(box: Box) -> list[str]:
    """The other user has made the folder that would be ours.

    Either the start is refused in one line, or another folder is taken.
    """
    box.prepare(_SCRIPT)
    folder = box.path / "run" / "tfmemtop"
    folder.mkdir()
    os.chown(folder, SOMEBODY, SOMEBODY)
    folder.chmod(0o777)
    try:
        screen = Screen([*TFMEMTOP, "--", *box.command(_SCRIPT)], box.environment(_SCRIPT), box.path / "cwd")
        until = time.monotonic() + 5
        while screen.code is None and time.monotonic() < until and not (box.path / "ran").exists():
            screen.draw(_LOOK_S)
        inside = list(folder.iterdir())
        code, drawn = screen.code, bytes(screen.drawn)
        screen.close()
    finally:
        left_behind(None)
    if inside:
        return ["our session lies in a folder of somebody else's"]
    if code is not None and (code == 0 or drawn.count(b"\n") != 1 or b"tfmemtop: " not in drawn):
        return [f"refused with {code}: {drawn[-200:]!r}"]
    return []


def recorded(box: Box) -> list[str]:
    """Only its user may read a recording, whatever the umask is."""
    box.prepare(_SCRIPT)
    done = subprocess.run(
        [*TFMEMTOP, "record", "-o", str(box.recording), "--", sys.executable, "-c", "pass"],
        env=box.environment(_SCRIPT), cwd=box.path / "cwd", capture_output=True, timeout=_LIMIT_S, umask=0o022,
    )  # fmt: skip
    mode = stat.S_IMODE(Path(box.recording).stat().st_mode)
    return [] if mode == 0o600 and done.returncode == 0 else [f"the recording is {mode:o}"]


TRIALS: dict[str, Callable[[Box], list[str]]] = {
    "other-reaches": reach,
    "other-commands": commands,
    "other-in-the-way": stands_in_the_way,
    "other-reads-recording": recorded,
}
