"""Another user of the same machine: what of a session that user can reach, read, or obstruct."""

import os
import socket
import stat
import subprocess
from collections.abc import Callable

from tests.tools.corpus.box import TFMEMTOP, Box
from tests.tools.corpus.running import left_behind, wait
from tests.tools.corpus.script import sh
from tests.tools.corpus.terminals import SecondReader, refused
from tests.tools.terminal import Terminal

SOMEBODY = 65534
_LIMIT_S = 120.0
_SCRIPT = sh("other", "waits to be ended", "echo secret; touch {box}/ran; sleep 60")


def _as_somebody(program: str, *arguments: str) -> str:
    """Return what a Python *program* prints when another user runs it; "" if it is not permitted what it tries."""
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-c", program, *arguments], user=SOMEBODY, group=SOMEBODY, extra_groups=[],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"}, cwd="/", capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if "PermissionError" in done.stderr else done.stdout + done.stderr


_CONNECTS = """
import socket, sys
line = socket.socket(socket.AF_UNIX, int(sys.argv[2]))
line.settimeout(2)
line.connect(sys.argv[1])
print("connected", flush=True)
"""
_LISTS = "import os, sys; print(os.listdir(sys.argv[1]))"
_READS = "import sys; print(open(sys.argv[1], 'rb').read())"
_COMMANDS = """
try:
    line.sendall(b'{"do":"stop","grace_s":0.1,"quit":true}\\n')
    print(line.recv(4096))
except OSError:
    pass
"""


class _Session:
    """A live session of ours. Every user may enter the folders above the session's own."""

    def __init__(self, box: Box) -> None:
        box.prepare(_SCRIPT)
        command = [*TFMEMTOP, "--record", str(box.path / "run.jsonl"), "--", *box.command(_SCRIPT)]
        self.screen = Terminal(command, box.environment(_SCRIPT), box.path / "cwd")
        self.reader = SecondReader(box.path / "run")
        outputs = box.path / "state" / "tfmemtop"
        # The engine writes the output's file in a thread.
        wait(lambda: not self.reader.look() and self.reader.reached and any(outputs.glob("*.log")), _LIMIT_S)
        wait((box.path / "ran").exists, _LIMIT_S)
        self.folder, self.output = next((box.path / "run" / "tfmemtop").glob("*/")), next(outputs.glob("*.log"))
        for folder in (box.path.parent, box.path, box.path / "run", box.path / "state", box.path / "home"):
            folder.chmod(0o755)

    def goes_on(self) -> bool:
        """Return whether the run still goes on after a second."""
        return not wait(self.reader.look, 1.0)

    def close(self) -> None:
        """End the session."""
        self.reader.close()
        self.screen.close()
        left_behind(None)


def reach(box: Box) -> list[str]:
    """The other user tries to connect to the sockets, list the folder, and read output and recording."""
    session = _Session(box)
    try:
        folder, output = session.folder, session.output
        stream, packets = str(int(socket.SOCK_STREAM)), str(int(socket.SOCK_SEQPACKET))
        tried = {
            "engine.sock": _as_somebody(_CONNECTS, str(folder / "engine.sock"), stream),
            "hook.sock": _as_somebody(_CONNECTS, str(folder / "hook.sock"), packets),
            "the folder of sessions": _as_somebody(_LISTS, str(folder.parent)),
            "the recording": _as_somebody(_READS, str(box.path / "run.jsonl")),
            "the output": _as_somebody(_READS, str(output)),
        }
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)}
        return [
            *(f"{what}: {said}" for what, said in tried.items() if said),
            *(f"{name} is {mode:o}" for name, mode in modes.items() if mode != 0o700),
        ]
    finally:
        session.close()


def commands(box: Box) -> list[str]:
    """Even with folders and sockets open, the other user receives nothing, and the engine executes no command."""
    session = _Session(box)
    try:
        sockets = (session.folder / "engine.sock", session.folder / "hook.sock")
        for path in (session.folder.parent, session.folder, *sockets):
            path.chmod(0o777)
        said = _as_somebody(_CONNECTS + _COMMANDS, str(sockets[0]), str(int(socket.SOCK_STREAM)))
        troubles = [] if said in ("connected\n", "connected\nb''\n") else [f"he was told of the run: {said}"]
        return troubles if session.goes_on() else [*troubles, "he could end the run"]
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
    screen = Terminal([*TFMEMTOP, "--", *box.command(_SCRIPT)], box.environment(_SCRIPT), box.path / "cwd")
    try:
        wait(lambda: screen.code is not None or (box.path / "ran").exists(), 5)
        if list(folder.iterdir()):
            return ["our session lies in a folder of somebody else's"]
        return [] if screen.code is None else refused(screen.code, screen.drawn.decode(errors="replace"), True)
    finally:
        screen.close()
        left_behind(None)


TRIALS: dict[str, Callable[[Box], list[str]]] = {
    "other-reaches": reach,
    "other-commands": commands,
    "other-in-the-way": stands_in_the_way,
}
