"""The folders of sessions.

A session's folder contains its sockets. Only its user can enter it. The process that owns the folder holds a lock on it
as long as the process runs, so a folder without a lock is left over from a process that has ended. A process number
could not show this, since another process may have the same number by now. The description of a session is the target
of a symbolic link, because a link is made as a whole or not at all, even where files cannot be written
(``ulimit -f 0``).
"""

import errno
import fcntl
import os
import secrets
import shutil
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tfmemtop.home import output_folder

_SOCKET_PATH_LIMIT = 107
_LETTERS, _DIGITS = "abcdefghjkmnpqrstuvwxyz", "23456789"
_DESCRIPTION = 1000  # bytes; some file systems allow no longer target of a link
_BACKLOG = 4096
"""Connections that may wait to be accepted, as far as the kernel allows: a run may begin with a thousand processes."""


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A session in progress. ``pid`` is the engine's; ``started`` is seconds since the epoch.

    ``reads`` is the number of the process that the session reads from outside; ``command`` is then the command line of
    that process. ``recorded`` is true if ``tfmemtop record`` runs the command: a screen only shows it. ``kernel`` is
    the number of the process of the Jupyter kernel that the session watches, which is not a child of the engine.
    ``connection`` is the kernel's connection file, and ``notebook`` the file of its notebook, if known.
    """

    id: str
    pid: int
    started: float
    command: list[str]
    socket: str
    output_path: str | None
    recorded: bool = False
    reads: int | None = None
    kernel: int | None = None
    connection: str | None = None
    notebook: str | None = None


class SessionFolder:
    """The folder of one session, made by :func:`open_session`, with its sockets already listening."""

    def __init__(self, path: Path, lock: int) -> None:
        self.id = path.name
        self.path = path
        self.engine_socket = path / "engine.sock"
        self.hook_socket = path / "hook.sock"
        self.log = path / "engine.log"
        self._lock: int | None = lock
        self.hooks = listen(self.hook_socket, socket.SOCK_SEQPACKET)
        try:
            self.readers = listen(self.engine_socket, socket.SOCK_STREAM)
        except OSError:
            self.hooks.close()
            raise

    def describe(self, info: SessionInfo) -> None:
        """Write the description by which other processes find the session.

        Raises:
            OSError: there is no room for the description.
        """
        text = msgspec.json.encode(info)
        while len(text) > _DESCRIPTION and info.command:
            info = msgspec.structs.replace(info, command=info.command[:-1])
            text = msgspec.json.encode(info)
        (self.path / "session").symlink_to(text.decode())

    def close(self) -> None:
        """Remove the folder and release the lock. The kept output is elsewhere and stays."""
        if self._lock is None:
            return
        self.hooks.close()
        self.readers.close()
        with suppress(OSError), _locked(self.path.parent):  # the parent was removed, or contains other sessions
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.parent.rmdir()
        os.close(self._lock)
        self._lock = None


def open_session(describe: Callable[[SessionFolder], SessionInfo] | None = None) -> SessionFolder:
    """Make the folder of a new session in the first place that has room for it.

    With *describe*, other processes can find the session.

    Raises:
        OSError: no place has room for the folder; the text contains the reason.
    """
    failed: OSError | None = None
    for parent in _places():
        try:
            _make(parent)
            with _locked(parent):
                _sweep(parent)
                return _open(parent, describe)
        except OSError as error:
            failed = failed or OSError(error.errno, error.strerror or str(error), str(parent))
    assert failed is not None
    raise failed


def sessions() -> list[SessionInfo]:
    """Return the sessions in progress, oldest first. Remove folders whose owners have ended."""
    found: dict[str, SessionInfo] = {}
    for parent in (*_places(), Path(f"/run/user/{os.getuid()}/tfmemtop")):
        with suppress(OSError):  # the place is missing, or belongs to another user
            _check(parent)
            with _locked(parent):
                found.update((session.id, session) for session in _sweep(parent))
    return sorted(found.values(), key=lambda session: session.started)


def choices_file() -> Path | None:
    """Return the file that stores the state in which the screen was left; ``None`` if its folder cannot be made."""
    try:
        return output_folder() / "choices.json"
    except OSError:
        return None


def _places() -> list[Path]:
    """Return the folders for sessions, best first. Only paths that are short enough to contain a socket."""
    name = f"tfmemtop-{os.getuid()}"
    places = [Path(os.environ.get("TMPDIR") or "/tmp", name), Path("/tmp", name), Path("/dev/shm", name)]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        places.insert(0, Path(runtime) / "tfmemtop")
    fitting = (place for place in places if place.is_absolute())
    return [f for f in dict.fromkeys(fitting) if len(os.fsencode(f)) + len("/abcde/engine.sock") <= _SOCKET_PATH_LIMIT]


def _make(parent: Path) -> None:
    parent.mkdir(mode=0o700, exist_ok=True)
    _check(parent)
    if stat.S_IMODE(parent.lstat().st_mode) != 0o700:
        parent.chmod(0o700)


def _check(parent: Path) -> None:
    found = parent.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(parent))
    if found.st_uid != os.getuid():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(parent))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock on *folder*, so that no other process removes a subfolder that is just being made."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _open(parent: Path, describe: Callable[[SessionFolder], SessionInfo] | None) -> SessionFolder:
    # The name begins with a letter, since text of only digits means the number of a process.
    name = secrets.choice(_LETTERS) + "".join(secrets.choice(_LETTERS + _DIGITS) for _ in range(4))
    path = parent / name
    path.mkdir(mode=0o700)
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = SessionFolder(path, lock)
        if describe is not None:
            folder.describe(describe(folder))
    except BaseException:
        os.close(lock)  # before the removal, which needs a file descriptor too
        shutil.rmtree(path, ignore_errors=True)
        raise
    return folder


def _sweep(parent: Path) -> list[SessionInfo]:
    """Return the sessions in progress that have a description. Remove folders without a lock."""
    alive = []
    for folder in parent.iterdir():
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue  # not a folder, or not ours
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with suppress(OSError, msgspec.DecodeError):  # the session has no description, or one of another version
                text = os.fsencode((folder / "session").readlink())
                alive.append(msgspec.json.decode(text, type=SessionInfo))
        else:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
    return alive


def listen(path: Path, kind: socket.SocketKind) -> socket.socket:
    """Return a non-blocking listening socket at *path*.

    Raises:
        OSError: the socket cannot be made.
    """
    sock = socket.socket(socket.AF_UNIX, kind)
    sock.setblocking(False)
    sock.bind(str(path))
    path.chmod(0o600)
    sock.listen(_BACKLOG)
    return sock


def peer(sock: socket.socket) -> tuple[int, int]:
    """Return the numbers of the process and of the user at the other end of *sock*."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return pid, uid
