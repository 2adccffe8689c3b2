"""Starts the exporter, a separate process beside the script, and sends it the stream as to any reader.

The exporter is forked, not started as a new program, so that both processes share the memory of the modules that the
engine has loaded. If the exporter fails, a notice reports it. It cannot block the engine, and cannot affect the script.
"""

import asyncio
import errno
import os
import signal
import socket
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from tfmemtop.engine.process.alerts import Failed
from tfmemtop.engine.process.daemon import rename
from tfmemtop.engine.process.launch import Export
from tfmemtop.engine.process.run import Runs
from tfmemtop.engine.stream.server import Reader
from tfmemtop.engine.stream.stream import Stream, line_of
from tfmemtop.events import Level, NoticeKind, Session
from tfmemtop.events.unstarted import StartError, Unstarted, Why
from tfmemtop.failure import facts_of
from tfmemtop.metrics import discovery
from tfmemtop.metrics.signs import BEAT_S, FAILED, TROUBLE
from tfmemtop.metrics.whole import can_be_replaced, draft_of, remove, replace
from tfmemtop.metrics.whose import whose
from tfmemtop.uncollected import uncollected

NAME = "tfmemtop-export"

SILENT_S = 30.0
"""An exporter that has sent no sign of life for this many seconds does not answer."""
_LOOK_S = 5.0
_WAIT_S = 10.0
"""How long the end of the session waits for the exporter to end. It may have to write a file on a busy machine.

There is no wait for an exporter that is stopped, or whose last sign of life is more than two beats old. An exporter
that makes no progress for :data:`_STUCK_S` seconds is not waited for any longer.
"""
_STUCK_S = 2.0
_GLANCE_S = 0.05
_TRIES, _TRY_S = 20, 0.05

_LAST_WORDS_S = 0.1

_BACKLOG = 128
_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS}


class Exporter:
    """One session's exporter; made by :func:`open_exporter`, which has checked all that can be checked."""

    def __init__(
        self, stream: Stream, pid: int, line: socket.socket, published: tuple[str, str] | None, draft: str | None
    ) -> None:
        self._stream = stream
        self.pid = pid
        """The number of the exporter's process. The process leads a process session with the same number."""
        self._published = published
        self._draft = draft
        self._line = line
        self._reader = Reader(stream, line)
        self._tasks: list[asyncio.Task[None]] = []
        self._looking: asyncio.TimerHandle | None = None
        self._beat = time.monotonic()
        self._ending = self._gone = False
        self._why = ""  # why it failed, by its own message
        self._code: int | None = None  # negative: the signal that ended it
        self.failed: list[Failed] = []

    def begin(self, runs: Runs) -> None:
        """Send the exporter the stream from its beginning. *runs* reports its end. Needs the running loop."""
        runs.adopt(self.pid, self._ended)
        loop = asyncio.get_running_loop()
        for event in self._stream.backlog.events():
            self._reader.push(line_of(event))
        self._stream.listen_to_lines(self._reader.push)
        self._tasks = [loop.create_task(self._write()), loop.create_task(self._read())]
        self._looking = loop.call_later(_LOOK_S, self._look)

    async def close(self) -> None:
        """Send the rest of the stream, and wait while the exporter writes its file; then end it if necessary."""
        self._ending = True
        if self._looking is not None:
            self._looking.cancel()
        self._stream.forget(self._reader.push)
        if time.monotonic() - self._beat <= 2 * BEAT_S:
            await self._wait_while_it_gets_on()
        for task in self._tasks:
            task.cancel()
        self._tell_of_end()
        self._line.close()
        await self._reap()
        if self._published is not None:
            discovery.withdraw(*self._published)
        if self._draft is not None:
            remove(self._draft)  # the exporter may have been killed while it wrote this file

    async def _wait_while_it_gets_on(self) -> None:
        finishing = asyncio.ensure_future(self._finish())
        begun = got_on = time.monotonic()
        before = -1
        while not (await asyncio.wait([finishing], timeout=_GLANCE_S))[0]:
            now, (state, used) = time.monotonic(), _activity(self.pid)
            if state == "R" or used != before:
                got_on, before = now, used
            if state in "Tt" or now - got_on > _STUCK_S or now - begun > _WAIT_S:
                break
        finishing.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await finishing

    async def _finish(self) -> None:
        """Wait until the exporter has received everything, and then until it has closed its end."""
        if self._tasks and not self._gone:
            writing, reading = self._tasks
            idle = asyncio.ensure_future(self._reader.idle.wait())
            await asyncio.wait([idle, writing], return_when=asyncio.FIRST_COMPLETED)
            with suppress(OSError):
                self._line.shutdown(socket.SHUT_WR)
            await reading

    async def _reap(self) -> None:
        """Collect the exporter's exit status, and kill it if it does not end.

        After some tries this gives up: an exporter whose file system does not answer can neither be killed nor waited
        for.
        """
        with suppress(ChildProcessError, ProcessLookupError):
            for _ in range(_TRIES):
                if os.waitpid(self.pid, os.WNOHANG)[0]:  # noqa: ASYNC222 (it does not wait)
                    return
                # The exporter has closed its end and is about to exit, or its time is over.
                await asyncio.sleep(_TRY_S)
                os.kill(self.pid, signal.SIGKILL)

    async def _write(self) -> None:
        with suppress(OSError):
            await self._reader.write()
        self._stream.forget(self._reader.push)  # so that events that the exporter does not read do not pile up

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        rest = b""
        with suppress(OSError):
            while data := await loop.sock_recv(self._line, 4096):
                self._beat = time.monotonic()
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    said = line[1:].decode(errors="replace")
                    if line[:1] == TROUBLE:
                        self._tell_of_file(said)
                    elif line[:1] == FAILED:
                        self._why = said

    def _tell_of_file(self, trouble: str) -> None:
        if trouble:
            self._fail(NoticeKind.METRICS_FILE_FAILED, trouble)
        else:
            self._stream.withdraw("metrics_file_failed")

    def _look(self) -> None:
        if time.monotonic() - self._beat > SILENT_S:
            self._stream.notice("exporter", NoticeKind.EXPORTER_SILENT)
        else:
            self._stream.withdraw("exporter")
        self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _ended(self, status: int) -> None:
        self._gone = True
        self._stream.forget(self._reader.push)
        if self._looking is not None:
            self._looking.cancel()
        if not self._ending:
            self._code = os.waitstatus_to_exitcode(status)
            # The exporter may have sent its reason. That is still in the socket, and is read in a moment.
            asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._tell_of_end)

    def _tell_of_end(self) -> None:
        code, self._code = self._code, None
        if code is None:
            return
        known = self._why or (signal.Signals(-code).name if -code in list(signal.Signals) else "")
        self._fail(NoticeKind.EXPORTER_ENDED, known, None if known else code)

    def _fail(self, kind: NoticeKind, detail: str, about: int | None = None) -> None:
        self.failed.append(Failed(kind, detail, about))
        key = "exporter" if kind is NoticeKind.EXPORTER_ENDED else kind.value
        self._stream.notice(key, kind, Level.WARNING, detail, about=about)


def _activity(pid: int) -> tuple[str, int]:
    """Return the state of a process as in ``/proc/PID/stat``, such as ``R``, and its processor time in clock ticks."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[0], int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return "X", 0  # the process has ended


def open_exporter(stream: Stream, asked: Export | None, session: Session) -> Exporter | None:
    """Start the exporter that *asked* describes; return ``None`` if that is ``None``.

    Call this before there are other threads.

    Raises:
        StartError: the address cannot be used, or a file cannot be written.
    """
    if asked is None:
        return None
    listener = _listen(asked) if asked.port is not None else None
    published = textfile = None
    if asked.textfile is not None:
        textfile = asked.textfile, draft_of(asked.textfile)
        _check_folder(*textfile)
    if asked.discovery is not None and listener is not None:
        published = asked.discovery, discovery.entry(listener, session.host, whose(session))
        try:
            if not can_be_replaced(asked.discovery):
                raise StartError(Unstarted(Why.METRICS_NO_FILE, asked.discovery))
            discovery.publish(*published, draft_of(asked.discovery))
        except OSError as error:
            raise _refused(Why.METRICS_FILE, asked.discovery, error) from None
    ours, its = socket.socketpair()
    ours.setblocking(False)
    # A signal to the whole process group, such as Ctrl-C, must not end the exporter before it has left the group.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        _become_it(its, before, Given(listener, textfile, published))
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    its.close()
    if listener is not None:
        listener.close()
    return Exporter(stream, pid, ours, published, textfile[1] if textfile else None)


class Given(NamedTuple):
    """The arguments for the exporter's tasks; see :class:`tfmemtop.metrics.exporter.Tasks`."""

    listener: socket.socket | None
    textfile: tuple[str, str] | None
    published: tuple[str, str] | None


def _become_it(line: socket.socket, mask: Collection[int], given: Given) -> NoReturn:
    """In the child process: close all file descriptors of the engine, and export until the stream ends."""
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        # Signals are meant for the script and the engine. This process ends with the stream.
        for number in signal.valid_signals() - _FAULTS - {signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP}:
            with suppress(OSError):  # some real-time signals belong to the C library
                signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        kept = {line.fileno()} | ({given.listener.fileno()} if given.listener is not None else set())
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        for descriptor in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
            if descriptor > 2 and descriptor not in kept:
                with suppress(OSError):  # the descriptor of the listing, which is closed by now
                    os.close(descriptor)
        os.chdir("/")
        os.umask(0o022)  # another user reads the file
        os.nice(5)
        rename(NAME)
        with uncollected():
            from tfmemtop.metrics.exporter import Tasks, export

        export(line, Tasks(*given))
        code = 0
    except Exception as error:
        with suppress(OSError):
            line.sendall(FAILED + facts_of(error).encode(errors="replace") + b"\n")
    finally:
        os._exit(code)


def _listen(asked: Export) -> socket.socket:
    assert asked.port is not None
    shown = f"[{asked.address}]" if ":" in asked.address else asked.address
    name = f"{shown}:{asked.port}"
    try:
        family, _, _, _, address = socket.getaddrinfo(
            asked.address, asked.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise _refused(Why.METRICS_ADDRESS, name, error) from None


def _check_folder(path: str, draft: str) -> None:
    """Check that *path* is a file or missing, and that its *draft* can be written beside it.

    Raises:
        StartError: *path* is something other than a file, or no file can be written in its folder.
    """
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, "")
        if not can_be_replaced(path):
            raise StartError(Unstarted(Why.METRICS_NO_FILE, path))
        replace(draft, b"", f"{draft}.")
        remove(draft)
    except OSError as error:
        raise _refused(Why.METRICS_FILE, path, error) from None


def _refused(why: Why, name: str, error: OSError) -> StartError:
    # Python adds its own words to some of the system's messages, so the message is taken from the system.
    known = error.errno is not None and error.errno in errno.errorcode
    said = os.strerror(error.errno or 0) if known else error.strerror or str(error)
    return StartError(Unstarted(why, name, said.lower()))
