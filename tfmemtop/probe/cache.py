"""The cache of built libraries: each is there completely, under a name that contains its digest, or not at all.

``probe-KEY-DIGEST.so`` is a library: KEY stands for all that it was built from, DIGEST is the SHA-256 of the file. A
library that crashed a program as it was loaded is replaced by ``probe-KEY-DIGEST.refused``. ``addresses-KEY.failed``
has the reason why there is no library of that name. ``replay-KEY-DIGEST.bin`` is a program. ``build-*`` are folders of
a build under way. The holder of the lock on the file ``lock`` owns them, and removes those that killed builders have
left.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import stat
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tfmemtop.home import user_folder

_KEPT = 16  # libraries, and as many refusals
_DRAFTS = "build-*"


class NotOurs(PermissionError):
    """The folder belongs to another user."""


class Library(NamedTuple):
    """A complete library.

    ``digest`` is the SHA-256 of its file, in hexadecimal; ``checksum`` is what a hook compares: :func:`checksum_of`.
    """

    path: Path
    digest: str
    checksum: int


class Built(NamedTuple):
    """The result of a build.

    If ``state`` is ``built``, the next three fields are as in :class:`Library`. Otherwise ``unbuilt`` has the fields of
    an event's ``Unbuilt``.
    """

    state: Literal["built", "unavailable", "failed"]
    path: str = ""
    digest: str = ""
    checksum: int = 0
    unbuilt: dict[str, Any] | None = None


def cache_folder() -> Path:
    """Return the folder of built libraries, to which only this user has access; make it if it is missing.

    Raises:
        OSError: the folder cannot be made.
        NotOurs: the folder belongs to another user, or there is no folder but something else.
    """
    folder = cache_path()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise NotOurs(folder)
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder


def cache_path() -> Path:
    """Return the path of that folder, which need not exist."""
    return user_folder("XDG_CACHE_HOME", ".cache") / "tfmemtop"


def describe(path: Path) -> Library:
    """Return the library at *path*, with digest and checksum of the file as it is now.

    Raises:
        OSError: the file cannot be read.
    """
    content = path.read_bytes()
    return Library(path, hashlib.sha256(content).hexdigest(), checksum_of(content))


def checksum_of(content: bytes) -> int:
    """Return the length of *content* and its CRC-32 in one number: in the script's process the hook has no SHA-256."""
    return len(content) << 32 | zlib.crc32(content)


def whole(path: Path, digest: str) -> Library | None:
    """Return the library at *path*, if it is there and has this *digest*, and no other user may write to it."""
    try:
        found = path.lstat()
        library = describe(path) if stat.S_ISREG(found.st_mode) else None
    except OSError:
        return None
    mine = found.st_uid == os.getuid() and not found.st_mode & 0o022
    return library if library and library.digest == digest and mine else None


def refuse(path: Path, number: "int | None") -> Path:
    """Delete the library at *path*, so that it is never used again, and return the file that marks it as refused.

    It has crashed the process that loaded it, by the signal *number*, ``None`` if that is not known.

    Raises:
        OSError: the mark cannot be written.
    """
    mark = path.with_suffix(".refused")
    try:
        mark.write_text(f"{'?' if number is None else signal.Signals(number).name}\n")
        _sync(mark)
    finally:
        path.unlink(missing_ok=True)
        _sync(path.parent)
    return mark


class Cache:
    """The libraries or programs called *name* in *folder* that were built from the inputs for which *key* stands."""

    def __init__(self, folder: Path, key: str, name: str = "probe", suffix: str = "so") -> None:
        self.folder = folder
        self._name = name
        self._key = key
        self._suffix = suffix

    def find(self) -> Library | None:
        """Return the library, if there is one that is complete and was not refused."""
        for path in self.folder.glob(f"{self._name}-{self._key}-*.{self._suffix}"):
            library = None if path.with_suffix(".refused").exists() else whole(path, digest_in(path))
            if library is not None:
                with contextlib.suppress(OSError):  # the cache may be read-only
                    os.utime(path)
                return library
        return None

    @property
    def failure(self) -> Path:
        """The file with the reason why the last build failed, where such a reason is kept."""
        return self.folder / f"{self._name}-{self._key}.failed"

    def refusals(self) -> list[Path]:
        """Return the files that :func:`refuse` has written."""
        return sorted(self.folder.glob(f"{self._name}-{self._key}-*.refused"))

    def keep(self, product: Library) -> Library:
        """Move *product* into the cache, and return it at its new path; others with this key are deleted.

        Raises:
            OSError: the disk has no room for it.
        """
        _sync(product.path)
        kept = self.folder / f"{self._name}-{self._key}-{product.digest}.{self._suffix}"
        for damaged in self.folder.glob(f"{self._name}-{self._key}-*.{self._suffix}"):
            damaged.unlink(missing_ok=True)
        product.path.rename(kept)
        self.failure.unlink(missing_ok=True)
        _sync(self.folder)
        for kind in (self._suffix, "refused", "failed"):
            for old in sorted(self.folder.glob(f"{self._name}-*.{kind}"), key=_last_used, reverse=True)[_KEPT:]:
                old.unlink(missing_ok=True)
        return product._replace(path=kept)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Let only one build run at a time: a second one waits, and then finds the first one's library.

        Raises:
            OSError: the folder cannot be locked.
        """
        with _lock(self.folder, fcntl.LOCK_EX):
            self._sweep()
            yield

    def sweep(self) -> None:
        """Remove the folders that killed builders have left, unless a build is under way."""
        if any(self.folder.glob(_DRAFTS)):
            with contextlib.suppress(OSError), _lock(self.folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                self._sweep()

    def _sweep(self) -> None:
        for draft in self.folder.glob(_DRAFTS):
            shutil.rmtree(draft, ignore_errors=True)

    def draft(self) -> "tempfile.TemporaryDirectory[str]":
        """Make a folder to build in, for the holder of the lock.

        Raises:
            OSError: the folder cannot be made.
        """
        return tempfile.TemporaryDirectory(
            dir=self.folder, prefix=_DRAFTS.removesuffix("*"), ignore_cleanup_errors=True
        )


def digest_in(path: Path) -> str:
    """Return the digest in the name of a library, or of a refusal."""
    return path.stem.rpartition("-")[2]


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0  # it was refused just now


def _sync(path: Path) -> None:
    """Write the file or folder through to the disk. That the disk is full is often reported only now."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _lock(folder: Path, how: int) -> Iterator[None]:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, how)
        yield
    finally:
        os.close(lock)
