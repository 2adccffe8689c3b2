"""Starting an engine, and finding those that run.

Every session has a folder of its own that only its user can enter; the engine holds a lock on the
folder's ``session.json`` for as long as it lives, so a session whose engine died is told from one
that goes on without a process number that another process may have by now.
"""

import fcntl
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from tfmemtop.settings import Settings

_SOCKET_PATH_LIMIT = 107
_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
_OUTPUTS_KEPT_DAYS = 30


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is started with; an empty *argv* only watches."""

    argv: list[str]
    cwd: str
    environment: dict[str, str]  # the user's own, pristine
    settings: Settings = Settings()
    interval_s: float = 0.1  # the hook's pace
    record: str | None = None  # path of a recording to write
    probe: bool = True  # look into the pools
    columns: int = 80
    rows: int = 24


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's answer: where to reach it, or why it could not start, with a shell's exit code."""

    id: str = ""
    socket: str = ""
    output_path: str | None = None
    error: str | None = None
    exit_code: int | None = None


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A session that goes on, as ``session.json`` describes it."""

    id: str
    pid: int  # the engine's
    started: float  # seconds since the epoch
    command: list[str]
    cwd: str
    socket: str
    output_path: str | None


class SessionFolder:
    """The folder of one session, with its sockets; made by the engine, removed at its end."""

    def __init__(self, id: str, path: Path) -> None:
        self.id = id
        self.path = path
        self.engine_socket = path / "engine.sock"
        self.hook_socket = path / "hook.sock"
        self.log = path / "engine.log"
        self._lock: int | None = None

    def describe(self, info: SessionInfo) -> None:
        """Write ``session.json`` and hold its lock from before it can be seen.

        Raises:
            OSError: it cannot be written.
        """
        draft = self.path / "session.json.new"
        self._lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.write(self._lock, msgspec.json.encode(info))
        draft.rename(self.path / "session.json")

    def remove(self) -> None:
        """Remove the folder and give up the lock; the output file lies elsewhere and stays."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def start(launch: Launch) -> Launched:
    """Start an engine in a session of its own; it starts the script at once.

    Errors, of the engine's own start too, come as ``Launched.error`` with an exit code.
    """
    if not all(map(_is_text, (*launch.argv, launch.cwd))):
        return Launched(error="the command line or the working directory is not valid UTF-8", exit_code=2)
    # Variables that are no text cannot stand in JSON; the engine inherits them and passes them on.
    texts = {name: value for name, value in launch.environment.items() if _is_text(name + value)}
    launch = msgspec.structs.replace(launch, environment=texts)
    try:
        engine = subprocess.Popen(
            [sys.executable, "-m", "tfmemtop.engine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # "-m" puts the working directory on sys.path, where the user's files could shadow the engine's imports.
            cwd="/",
            env=own_environment(),
            start_new_session=True,
            # What the user's shell opened for the script, as in <(…), passes through the engine to it.
            close_fds=False,
        )
        assert engine.stdin and engine.stdout and engine.stderr
        with engine.stdin as asked, engine.stdout as answers, engine.stderr as complaints:
            asked.write(msgspec.json.encode(launch) + b"\n")
            asked.flush()
            # Not communicate(): that would also wait for the engine's end.
            answer = answers.readline()
            complaint = b"" if answer else complaints.read()
    except OSError as error:
        return Launched(error=f"the engine cannot be started: {error}", exit_code=1)
    # It goes on by itself: whoever starts it is not to wait for it, and not to be warned about that.
    engine.returncode = 0
    try:
        return msgspec.json.decode(answer, type=Launched)
    except msgspec.DecodeError:
        last = complaint.decode(errors="replace").strip().splitlines()[-1:] or ["no answer"]
        return Launched(error=f"the engine cannot be started: {last[0]}", exit_code=1)


def variables_beyond_json() -> dict[str, str]:
    """What of this process's environment :func:`start` could not write into the launch."""
    return {name: value for name, value in os.environ.items() if not _is_text(name + value)}


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def own_environment() -> dict[str, str]:
    """Our own environment for a Python of ours that starts in "/", where a checkout would not be found."""
    environment = dict(os.environ)
    package_parent = Path(__file__).parents[2]
    if package_parent.name not in ("site-packages", "dist-packages"):
        parts = [str(package_parent), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(part for part in parts if part)
    return environment


def sessions_folder() -> Path:
    """The 0700 folder that holds this user's sessions, made if it is missing.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
    """
    folders = [Path(tempfile.gettempdir()) / f"tfmemtop-{os.getuid()}", Path(f"/tmp/tfmemtop-{os.getuid()}")]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir() and os.access(runtime, os.W_OK):
        folders.insert(0, Path(runtime) / "tfmemtop")
    fitting = [f for f in folders if len(os.fsencode(f)) + len("/abcde/engine.sock") <= _SOCKET_PATH_LIMIT]
    folder = fitting[0]
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else; set XDG_RUNTIME_DIR to a folder of your own")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder


def passing_folder() -> "tempfile.TemporaryDirectory[str]":
    """A temporary folder with a name short enough for a socket in it: in /tmp, where TMPDIR's own is too long.

    Raises:
        OSError: it cannot be made.
    """
    longest = Path(tempfile.gettempdir(), "tfmemtop-abcdefgh", "hook.sock")
    fits = len(os.fsencode(longest)) <= _SOCKET_PATH_LIMIT
    return tempfile.TemporaryDirectory(prefix="tfmemtop-", dir=None if fits else "/tmp")


def output_folder() -> Path:
    """Where scripts' outputs are kept, made if it is missing.

    Raises:
        OSError: it cannot be made.
    """
    state = os.environ.get("XDG_STATE_HOME") or ""
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    folder = base / "tfmemtop"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def forget_old_outputs() -> None:
    """Remove the outputs to which nothing was written for thirty days, but for those of sessions that go on.

    Raises:
        OSError: one cannot be removed, or the folders cannot be read.
    """
    going_on = {session.output_path for session in sessions()}
    oldest = time.time() - _OUTPUTS_KEPT_DAYS * 86400
    for path in output_folder().glob("*.log"):
        if str(path) not in going_on and path.stat().st_mtime < oldest:
            path.unlink()


def new_session() -> SessionFolder:
    """A folder under a short new name.

    Raises:
        OSError: it cannot be made.
    """
    parent = sessions_folder()
    while True:
        id = "".join(secrets.choice(_ALPHABET) for _ in range(5))
        try:
            (parent / id).mkdir(mode=0o700)
        except FileExistsError:
            continue
        return SessionFolder(id, parent / id)


def sessions() -> list[SessionInfo]:
    """The sessions that go on, oldest first; what dead engines left behind is removed.

    Raises:
        OSError: the folder of sessions cannot be read.
    """
    alive = []
    for folder in sessions_folder().iterdir():
        try:
            lock = os.open(folder / "session.json", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            # Just being made, unless it is old.
            if folder.is_dir() and time.time() - folder.stat().st_mtime > 60:
                shutil.rmtree(folder, ignore_errors=True)
            continue
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            try:
                alive.append(msgspec.json.decode(os.read(lock, 1 << 20), type=SessionInfo))
            except msgspec.DecodeError:
                continue  # of another version of tfmemtop: not ours to show, nor to remove while it lives
        else:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
    return sorted(alive, key=lambda session: session.started)
