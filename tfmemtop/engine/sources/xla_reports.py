"""Waits for the reports that XLA writes about the clusters it compiles, publishes their content, and deletes them.

XLA writes many files for each module, into a folder for each process. Two of them are read: the buffer assignment, and
the text of the module that it is about. All others are deleted at once. The size of the folders is bounded.
"""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec

from tfmemtop.engine.sources.processes import is_alive
from tfmemtop.engine.sources.source import Source, open_carefully
from tfmemtop.engine.stream import Stream
from tfmemtop.events import Event, Hook, Run, XlaCluster, XlaMissing
from tfmemtop.events.damage import Damaged, damage_of, damage_text
from tfmemtop.units import MIB

PACE_S = 0.5
MOST_BYTES = 512 * MIB
"""The most bytes of files in XLA's folders. If there are more, the oldest files are deleted unread."""
ALL_TOLD, WORTH_TELLING = 32, 0.01
"""How many clusters of a process are published, however small.

A later cluster is published only if it has at least this share of the largest one's bytes, or its report is missing.
"""
LARGEST = 128 * MIB  # bytes of a file that is read

_BESIDE = ("-buffer-assignment-values.txt", "-live-range.txt")
"""Parts of the buffer assignment that XLA from TensorFlow 2.22 on writes into files of their own."""
_ASSIGNMENT, _TEXT, _BEFORE = "-buffer-assignment.txt", ".txt", "before_optimizations.txt"
_SETTLED_S = 1.0  # after which a file that did not change is complete
_PATIENCE_S = 20.0  # after which a file that still cannot be read is given up
_LINGER_S = 120.0  # how long a module's text waits for its buffer assignment
_LINE = 256 * 1024  # bytes of a line; the rest of a longer one counts as lines of their own
_WHOLE = -1  # the number of the module in an event that is about the whole process


class _File(msgspec.Struct, frozen=True):
    path: Path
    size: int
    changed: float  # when, by the clock of the file system, which is that of the processes
    pid: int


class _Process(msgspec.Struct):
    """What is known of a process that writes reports."""

    sizes: dict[str, int] = msgspec.field(default_factory=dict)  # of files in bytes, when they were last looked at
    clusters: int = 0  # that were published
    largest: int = 0  # bytes of the temporary buffers of the largest cluster
    told: bool = False  # whether it has been published that the process has written too much

    def worth_telling(self, cluster: XlaCluster) -> bool:
        """Return whether *cluster* is to be published, and if so, count it.

        Readers keep a certain number of clusters, so not all are published.
        """
        if self.clusters >= ALL_TOLD and cluster.temporary < WORTH_TELLING * self.largest and not cluster.missing:
            return False
        self.clusters += 1
        self.largest = max(self.largest, cluster.temporary)
        return True


class XlaReports(Source):
    """Reads, publishes and deletes the reports that appear in *folder*, each in the folder of its process.

    Reports in a folder that is not named after a process count as reports of the run's first process.
    """

    def __init__(self, stream: Stream, folder: Path) -> None:
        super().__init__(stream)
        self._folder = folder
        self._program = 0
        self._processes: dict[int, _Process] = {}
        self._refused: tuple[XlaMissing, str] | None = None
        self._looking = threading.Lock()  # _watch() looks in a thread, and drain() may look at the same time

    def run(self, *, asked: bool, refused: tuple[XlaMissing, str] | None) -> None:
        """Prepare for a run that is about to start.

        With *asked*, reports are requested from XLA. *refused* is why they could not be requested, ``None`` otherwise.
        """
        self._refused = refused
        if not asked or refused:
            return
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            self._refused = XlaMissing.NO_FOLDER, error.strerror or str(error)
            return
        if not self._tasks:
            self._keep_doing(self._watch())

    def drain(self) -> None:
        """Publish the reports that have been written until now, so that the end of a run is published after them."""
        if self._tasks:
            self._publish(self._look(ended=True))

    def close(self) -> None:
        """Publish the reports that are there, stop, and delete the folder."""
        super().close()
        self.drain()
        shutil.rmtree(self._folder, ignore_errors=True)

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if isinstance(event, Run):
            self._program = event.pid
        # Readers that fold the stream know a process only from its Hook event on.
        if isinstance(event, Hook) and self._refused and event.tensorflow is None:
            why, detail = self._refused
            self._stream.publish(
                XlaCluster(t=self._stream.now(), pid=event.pid, name="", module=_WHOLE, missing=why, detail=detail)
            )

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(PACE_S)
            self._publish(await asyncio.to_thread(self._look))

    def _publish(self, found: list[XlaCluster]) -> None:
        for one in found:
            self._stream.publish(one)

    def _look(self, *, ended: bool = False) -> list[XlaCluster]:
        """Return the clusters of the complete reports, and an event for each report that cannot be read.

        With *ended*, the reports of all processes that have ended count as complete.
        """
        with self._looking:
            found: list[XlaCluster] = []
            files = self._files()
            now = time.time()
            for file in files:
                self._consider(file, now, ended, found)
            self._bound(found)
            return found

    def _files(self) -> list[_File]:
        """Return all files in the folders, the oldest first."""
        found = []
        for entry in _entries(self._folder):
            pid = int(entry.name) if entry.name.isdecimal() and len(entry.name) < 10 else self._program
            for file in _entries(Path(entry.path)):
                with suppress(OSError):  # the file has been deleted
                    status = file.stat(follow_symlinks=False)
                    found.append(_File(Path(file.path), status.st_size, status.st_mtime, pid))
        return sorted(found, key=lambda file: file.changed)

    def _consider(self, file: _File, now: float, ended: bool, found: list[XlaCluster]) -> None:
        from tfmemtop.engine.sources.xla_assignment import Unread  # imported here, as few sessions have reports

        name = file.path.name
        process = self._processes.setdefault(file.pid, _Process())
        if name.endswith(_ASSIGNMENT):
            ended = ended and not is_alive(file.pid)  # else it is a child that goes on
            same = process.sizes.get(name) == file.size and now - file.changed >= _SETTLED_S
            process.sizes[name] = file.size
            if not same and not ended:
                return
            try:
                cluster = self._read(file)
            except (OSError, Damaged, Unread) as error:
                if not ended and now - file.changed < _PATIENCE_S:
                    return  # still being written
                detail = str(error) if isinstance(error, Unread) else damage_text(*damage_of(error))
                cluster = self._without(file, XlaMissing.UNREAD, detail)
            if cluster is not None and process.worth_telling(cluster):
                found.append(cluster)
            process.sizes.pop(name, None)
            for path in (file.path, *_beside(file.path), _beside_it(file.path, _TEXT)):
                _delete(path)
        elif not _is_read(name) or now - file.changed > _LINGER_S:
            _delete(file.path)

    def _read(self, file: _File) -> XlaCluster | None:
        """Return the cluster of a complete buffer assignment; ``None`` if nothing is to be published.

        Raises:
            OSError: the file cannot be read.
            Damaged: it is not a regular file.
            Unread: the form of the file is not known.
        """
        from tfmemtop.engine.sources.xla_cluster import make_cluster

        number, name = _module(file.path.name)
        if file.size > LARGEST:
            return self._without(file, XlaMissing.TOO_LARGE, "")
        return make_cluster(
            chain(_lines(file.path), *map(_lines_if_any, _beside(file.path))),
            _lines_if_any(_beside_it(file.path, _TEXT)),
            pid=file.pid,
            name=name,
            module=number,
            t=self._stream.now(),
        )

    def _without(self, file: _File, why: XlaMissing, detail: str) -> XlaCluster:
        from tfmemtop.engine.sources.xla_cluster import function_name

        number, name = _module(file.path.name)
        t = self._stream.now()
        return XlaCluster(t=t, pid=file.pid, name=function_name(name), module=number, missing=why, detail=detail)

    def _bound(self, found: list[XlaCluster]) -> None:
        """If there are too many bytes, delete the oldest files until half of what is allowed is left."""
        files = self._files()
        size = sum(file.size for file in files)
        if size <= MOST_BYTES:
            return
        for file in files:
            if size <= MOST_BYTES // 2:
                break
            _delete(file.path)
            size -= file.size
            process = self._processes.setdefault(file.pid, _Process())
            if not process.told:
                process.told = True
                t, why = self._stream.now(), XlaMissing.TOO_MUCH
                found.append(XlaCluster(t=t, pid=file.pid, name="", module=_WHOLE, missing=why, detail=str(MOST_BYTES)))


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []  # it is not a folder, or was deleted, or the script has taken away the right to read it


def _delete(path: Path) -> None:
    with suppress(OSError):  # as for a folder
        path.unlink(missing_ok=True)


def _beside_it(assignment: Path, ending: str) -> Path:
    """Return the file that belongs to *assignment*: the same name with another *ending*."""
    return assignment.with_name(assignment.name.removesuffix(_ASSIGNMENT) + ending)


def _beside(assignment: Path) -> list[Path]:
    return [_beside_it(assignment, ending) for ending in _BESIDE]


def _is_read(name: str) -> bool:
    """Return whether a file is read together with the buffer assignment, which XLA writes after it."""
    return (name.endswith("optimizations.txt") and not name.endswith(_BEFORE)) or name.endswith(_BESIDE)


def _module(name: str) -> tuple[int, str]:
    """Return XLA's number of the module, and its name.

    *name* is a file's, such as ``module_0072.a_inference_f_12__.9.cpu_after_optimizations…``.
    """
    rest = name.removesuffix(_ASSIGNMENT)
    begin, _, rest = rest[rest.find("module_") :].partition(".")
    digits = begin.removeprefix("module_")
    number = int(digits) if digits.isdecimal() and len(digits) < 10 else 0
    for stage in (".cpu_after_", ".sm_", ".gpu_after_", ".gfx"):
        rest = rest.rpartition(stage)[0] or rest
    return number, rest or name


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of *path*.

    Raises:
        OSError: *path* cannot be read.
        Damaged: it is not a regular file.
    """
    with open_carefully(path) as file:
        while line := file.readline(_LINE):
            yield line.decode("utf-8", "replace").rstrip("\n")


def _lines_if_any(path: Path) -> Iterator[str]:
    """Yield the lines of *path* as :func:`_lines` does; none if the file is missing or too large."""
    try:
        if path.stat(follow_symlinks=False).st_size <= LARGEST:
            yield from _lines(path)
    except (OSError, Damaged):
        return
