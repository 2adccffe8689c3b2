"""Where built libraries are kept: each whole, under a name that says its digest, or not at all.

``probe-KEY-DIGEST.so`` is a library: KEY names what it was built of, DIGEST is the SHA-256 of the file. One that ended
a program as it was loaded leaves ``probe-KEY-DIGEST.refused``. ``replay-KEY-DIGEST.bin`` is a program. ``build-*`` are
folders of a build under way: the holder of the lock on ``lock`` owns them, and finds what killed builders left.
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
from typing import NamedTuple

_KEPT = 16  # libraries, and as many refusals
_DRAFTS = "build-*"


class NotOurs(PermissionError):
    """The folder belongs to another user."""


class Library(NamedTuple):
    """A library that is whole.

    ``digest`` is the SHA-256 of its file, in hexadecimal; ``checksum`` is what a hook compares: :func:`checksum_of`.
    """

    path: Path
    digest: str
    checksum: int


def cache_folder() -> Path:
    """Where built libraries are kept, open to this user alone; made if it is missing.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
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
    """Where that folder is, or would be."""
    cache = os.environ.get("XDG_CACHE_HOME") or ""
    return (Path(cache) if cache.startswith("/") else Path.home() / ".cache") / "tfmemtop"


def describe(path: Path) -> Library:
    """The file at *path*, as it is now.

    Raises:
        OSError: it cannot be read.
    """
    content = path.read_bytes()
    return Library(path, hashlib.sha256(content).hexdigest(), checksum_of(content))


def checksum_of(content: bytes) -> int:
    """The length of *content* and its CRC-32 in one number: the hook, in the script's process, has no SHA-256."""
    return len(content) << 32 | zlib.crc32(content)


def whole(path: Path, digest: str) -> Library | None:
    """The library, if it is there, is as it was when it was kept, and no other user may write to it."""
    try:
        found = path.lstat()
        library = describe(path) if stat.S_ISREG(found.st_mode) else None
    except OSError:
        return None
    mine = found.st_uid == os.getuid() and not found.st_mode & 0o022
    return library if library and library.digest == digest and mine else None


def refuse(path: Path, number: "int | None") -> Path:
    """See to it that the library at *path* is never handed out again; the file that says so.

    It has ended the process that loaded it, by the signal *number*, ``None`` if that is not known.

    Raises:
        OSError: this cannot be written down.
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
    """The libraries or programs called *name* in *folder* that were built of what *key* names."""

    def __init__(self, folder: Path, key: str, name: str = "probe", suffix: str = "so") -> None:
        self.folder = folder
        self._name = name
        self._key = key
        self._suffix = suffix

    def find(self) -> Library | None:
        """The library, if there is one that is whole and was not refused."""
        for path in self.folder.glob(f"{self._name}-{self._key}-*.{self._suffix}"):
            library = None if path.with_suffix(".refused").exists() else whole(path, digest_in(path))
            if library is not None:
                with contextlib.suppress(OSError):  # a cache that can only be read
                    os.utime(path)
                return library
        return None

    def refusals(self) -> list[Path]:
        """What :func:`refuse` has left."""
        return sorted(self.folder.glob(f"{self._name}-{self._key}-*.refused"))

    def keep(self, product: Library) -> Library:
        """Move *product* into the cache; others with this key go.

        Raises:
            OSError: the disk cannot hold it.
        """
        _sync(product.path)
        kept = self.folder / f"{self._name}-{self._key}-{product.digest}.{self._suffix}"
        for damaged in self.folder.glob(f"{self._name}-{self._key}-*.{self._suffix}"):
            damaged.unlink(missing_ok=True)
        product.path.rename(kept)
        _sync(self.folder)
        for kind in (self._suffix, "refused"):
            for old in sorted(self.folder.glob(f"{self._name}-*.{kind}"), key=_last_used, reverse=True)[_KEPT:]:
                old.unlink(missing_ok=True)
        return product._replace(path=kept)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One build at a time: a second one finds the first one's library.

        Raises:
            OSError: nothing can be locked here.
        """
        with _lock(self.folder, fcntl.LOCK_EX):
            self._sweep()
            yield

    def sweep(self) -> None:
        """Remove what killed builders have left, unless a build is under way."""
        if any(self.folder.glob(_DRAFTS)):
            with contextlib.suppress(OSError), _lock(self.folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                self._sweep()

    def _sweep(self) -> None:
        for draft in self.folder.glob(_DRAFTS):
            shutil.rmtree(draft, ignore_errors=True)

    def draft(self) -> "tempfile.TemporaryDirectory[str]":
        """A folder to build in, for the holder of the lock.

        Raises:
            OSError: it cannot be made.
        """
        return tempfile.TemporaryDirectory(
            dir=self.folder, prefix=_DRAFTS.removesuffix("*"), ignore_cleanup_errors=True
        )


def digest_in(path: Path) -> str:
    """The digest that the name of a library, or of a refusal, says."""
    return path.stem.rpartition("-")[2]


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0  # refused this moment


def _sync(path: Path) -> None:
    """Have the disk hold it: what a full one cannot keep is often told only now."""
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
