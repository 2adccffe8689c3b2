"""Full disks, read-only ones, and a second user: ``python -m tests.tools.corpus.places [NAME…]``; needs root.

Each folder that tfmemtop writes to is in turn a tmpfs of 64 KiB that is full from the start, one that fills up while
the script runs, and one that is read-only. Either the start is refused, with one clear line and nothing started, or
the script runs to its end and can be reached. It must never run where no screen can reach it. Where tfmemtop needs
nothing in the folder, the script must run. The mounts are in a namespace of their own.
"""

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.tools.corpus import running, second_user
from tests.tools.corpus.box import TFMEMTOP, Box
from tests.tools.corpus.running import left_behind, wait
from tests.tools.corpus.script import sh
from tests.tools.corpus.terminals import SecondReader, refused
from tests.tools.terminal import Terminal

_CLONE_NEWNS = 0x00020000
_LIMIT_S = 120.0
CODE = 3

_SCRIPT = sh(
    "place",
    "tells that it runs, and counts",
    f"touch {{box}}/ran; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; sleep 0.1; done; exit {CODE}",
)

How = Literal["full", "fills", "read-only", "no file", "deleted"]
Way = Literal["record", "live"]


@dataclass(frozen=True)
class Place:
    """One case. *where* is the folder to which *how* applies; ``recording`` is that for the file of ``record -o``."""

    where: str
    how: How
    way: Way

    @property
    def name(self) -> str:
        """The name of the case on the command line."""
        return f"{self.way}-{self.where}-{self.how.replace(' ', '-')}"


_HOWS: tuple[How, ...] = ("full", "fills", "read-only")
_WAYS: tuple[Way, ...] = ("record", "live")

PLACES: tuple[Place, ...] = (
    *(
        Place(where, how, way)
        for way in _WAYS
        for where in ("run", "tmp", "state", "cache", "home", "recording")
        for how in _HOWS
    ),
    *(Place("cwd", how, way) for way in _WAYS for how in ("read-only", "deleted")),
    *(Place("anywhere", "no file", way) for way in _WAYS),
    *(Place("all", how, way) for way in _WAYS for how in _HOWS),
)
"""``all`` means runtime folder, TMPDIR, state and cache at once."""

_ALL = ("run", "tmp", "state", "cache")


def may_be_refused(place: Place) -> bool:
    """Return whether tfmemtop may refuse to start: without the session's folder no screen could reach the run."""
    if place.way == "record":
        return place.where in ("all", "recording") or (place.where, place.how) == ("run", "read-only")
    return place.where in ("all", "run", "recording", "anywhere")


def may_mount() -> str:
    """Give this process a mount namespace of its own. Return "", or the reason why that is not possible."""
    if os.getuid() != 0:
        return "mounting needs root"
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
        return f"no mount namespace: {os.strerror(ctypes.get_errno())}"
    done = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


def attempt(place: Place, box: Box) -> list[str]:
    """Run the script there. Return what is wrong with how tfmemtop behaves; the list is empty if nothing is."""
    box.prepare(_SCRIPT)
    names = _ALL if place.where == "all" else (place.where,)
    folders = [box.path / name for name in names if place.how in _HOWS]
    mounted: list[Path] = []
    try:
        for folder in folders:
            folder.mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(folder)], check=True)
            mounted.append(folder)
            if place.how == "full":
                fill(folder)
            if place.how == "read-only":
                subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        return _live(place, box, folders) if place.way == "live" else _record(place, box, folders)
    finally:
        left_behind(None)
        for folder in reversed(mounted):
            subprocess.run(["umount", "-l", str(folder)], check=False)


def fill(folder: Path) -> None:
    """Fill the folder to its last byte."""
    for size in (4096, 1):
        with suppress(OSError), (folder / f"junk{size}").open("ab", buffering=0) as file:
            while True:
                file.write(b"j" * size)
    for number in range(2000):
        with suppress(OSError):
            (folder / f"j{number}").touch()
            continue
        break


def _command(place: Place, box: Box) -> list[str]:
    file = box.path / "recording" / "run.jsonl" if place.where == "recording" else box.path / "run.jsonl"
    file.parent.mkdir(exist_ok=True)
    options = ["record", "-o", str(file)] if place.way == "record" else []
    if place.way == "live" and place.where == "recording":
        options = ["--record", str(file)]
    # A Python starts tfmemtop where something has to be done first.
    first = [sys.executable, "-c", _FIRST[place.how]] if place.how in _FIRST else []
    return [*first, *TFMEMTOP, *options, "--", *box.command(_SCRIPT)]


_FIRST = {
    "no file": "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)); "
    "os.execv(sys.argv[1], sys.argv[1:])",
    "deleted": "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); "
    "os.execv(sys.argv[1], sys.argv[1:])",
}


def _environment(place: Place, box: Box) -> dict[str, str]:
    environment = box.environment(_SCRIPT)
    if place.where == "home":
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            del environment[name]
    return environment


def _record(place: Place, box: Box, folders: list[Path]) -> list[str]:
    process = subprocess.Popen(
        _command(place, box), cwd=box.path / "cwd", env=_environment(place, box), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    if place.how == "fills":
        wait(lambda: (box.path / "ran").exists() or process.poll() is not None, _LIMIT_S)
        for folder in folders:
            fill(folder)
    try:
        out, told = process.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return ["does not end"]
    err = told.decode(errors="replace")
    if not (box.path / "ran").exists():
        return refused(process.returncode, err, may_be_refused(place))
    troubles = [] if process.returncode == CODE else [f"exit code {process.returncode}: {err[-200:]!r}"]
    if out != b"".join(b"line %d\n" % number for number in range(1, 13)):
        troubles.append(f"the script's output is {out[:100]!r}")
    if "Traceback" in err:
        troubles.append("a traceback: " + err.strip().splitlines()[-1])
    return troubles


def _live(place: Place, box: Box, folders: list[Path]) -> list[str]:
    ran = box.path / "ran"
    fallback = f"tfmemtop-{os.getuid()}/*/engine.sock"
    readers = [
        SecondReader(box.path / "run"),
        SecondReader(box.path / "tmp", fallback),
        SecondReader(Path("/tmp"), fallback, of=str(box.path)),  # where other sessions of this machine are too
    ]
    to_fill = folders if place.how == "fills" else []

    def over() -> bool:
        for reader in readers:
            reader.look()
        while to_fill and ran.exists() and any(reader.reached for reader in readers):
            fill(to_fill.pop())
        return screen.code is not None or any(reader.end for reader in readers)

    screen = Terminal(_command(place, box), _environment(place, box), box.path / "cwd")
    try:
        wait(over, _LIMIT_S)
        if screen.code is not None and not ran.exists():
            time.sleep(1.0)  # it may not have run yet: a process that was started goes on by itself
        drawn = screen.drawn.decode(errors="replace")
        if screen.code is not None and not ran.exists():
            return refused(screen.code, drawn, may_be_refused(place))
        if screen.code is not None:
            return [f"the script runs and nobody sees it: exit code {screen.code}, {drawn[-200:]!r}"]
        ends = [reader.end for reader in readers if reader.end]
        if not ends:
            return ["the run's end is not told"]
        troubles = [] if ends[0].exit_code == CODE else [f"the script ended with {ends[0]}"]
        for key in (b"q", b"q", b"l"):
            screen.press(key)
            wait(lambda: screen.code is not None, 20)
        if screen.code != CODE:
            troubles.append(f"the screen ends with {screen.code}")
        named = re.findall(r"tfmemtop: (?:output|recorded) in (\S+)", screen.drawn.decode(errors="replace"))
        troubles += [f"{path} is named, and nothing is there" for path in named if not _has_something(path)]
        return troubles
    finally:
        for reader in readers:
            reader.close()
        screen.close()


def _has_something(path: str) -> bool:
    try:
        return Path(path).stat().st_size > 0
    except OSError:
        return False


def main() -> int:
    """Try the cases named on the command line, or all. Return 1 if one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.corpus.places", description=__doc__)
    parser.add_argument("--json", type=Path, help="write what went wrong to this file")
    parser.add_argument("names", nargs="*", metavar="NAME", help="whole or as it begins; all if none")
    arguments = parser.parse_args()
    chosen = [
        place for place in PLACES if not arguments.names or any(place.name.startswith(name) for name in arguments.names)
    ]
    if reason := may_mount():
        print(f"left out: {reason}")
        return 0
    running.become_init()
    root = Path(tempfile.mkdtemp(prefix="tfp-", dir="/tmp"))
    wrong: dict[str, list[str]] = {}

    def tell(name: str, troubles: list[str]) -> None:
        if troubles:
            wrong[name] = troubles
        print(f"{name:28} {'; '.join(troubles) or 'as it should'}", flush=True)

    try:
        box = Box(root, root / "cache")
        for place in chosen:
            tell(place.name, attempt(place, box))
        for name, trial in second_user.TRIALS.items():
            if not arguments.names or any(name.startswith(each) for each in arguments.names):
                tell(name, trial(box))
    finally:
        running.end_all()
        shutil.rmtree(root, ignore_errors=True)
    print(f"{len(wrong)} went wrong")
    if arguments.json:
        arguments.json.write_text(json.dumps(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
