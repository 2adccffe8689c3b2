"""Starts the script with everything that it should inherit, and finds out how it ended."""

import asyncio
import errno
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from tfmemtop import limits
from tfmemtop.engine.process.launch import (
    Launch,
    Launched,
    Refused,
    StartError,
    readable,
    with_hook,
    with_report,
    without_engine,
    xla_folder,
)
from tfmemtop.engine.process.pseudo_terminal import PseudoTerminal
from tfmemtop.engine.sources.cgroup import OomCounter
from tfmemtop.engine.sources.processes import HostProcess, exit_code
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.events import NoticeKind, Run, RunEnd
from tfmemtop.exit_codes import SIGNALLED
from tfmemtop.failure import Refusal, facts_of, reason
from tfmemtop.limits import Machine
from tfmemtop.settings import Settings, launch_environment, names_a_secret

_READ = re.compile(r"""(?:environ(?:\.get)?\s*[\[(]|getenv\s*\()\s*["'](\w{1,60})["']""")
_MOST = 1 << 20  # bytes of the script


def named_variables(argv: Sequence[str], cwd: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return those variables of *environment* that the text of the script in *argv* names, but no secrets."""
    script = next((word for word in argv if word.endswith(".py")), None)
    if script is None:
        return {}
    try:
        with open(os.path.join(cwd, script), encoding="utf-8", errors="replace") as file:  # noqa: PTH118, PTH123
            names = _READ.findall(file.read(_MOST))
    except OSError:
        return {}  # the script itself will say so
    return {name: environment[name] for name in names if name in environment and not names_a_secret(name)}


_LOOK_S = 0.25
_GIVEN = resource.getrlimit(resource.RLIMIT_NOFILE)  # of open files
_ENOUGH = 65_536


class Prepared(msgspec.Struct, frozen=True, dict=True):
    """A run that is ready to start: everything that can be checked beforehand has been checked.

    ``argv`` is the script's command line, ``shown`` is the same in valid UTF-8. ``environment`` is the script's whole
    environment. ``no_report`` is why no reports are requested from XLA although the settings ask for them.
    """

    argv: list[str]
    shown: list[str]
    environment: dict[str, str]
    settings: Settings
    no_report: Refused | None = None


class Runs:
    """The runs of one session, one at a time.

    The script's stdio is the *terminal*; without one, it is that of this process. Each of *drains* is called when the
    script has ended, so that everything that the script sent and printed is published before :class:`RunEnd`.
    """

    def __init__(
        self,
        stream: Stream,
        launch: Launch,
        *,
        hook_socket: Path,
        terminal: PseudoTerminal | None = None,
        drains: Sequence[Callable[[], None]] = (),
    ) -> None:
        self._stream = stream
        self._launch = launch
        self._hook_socket = hook_socket
        self._terminal = terminal
        self._drains = drains
        # Held open, so that the script starts in the user's folder even if that folder has been removed.
        self._folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._given: dict[str, str] = {readable(argument): argument for argument in launch.argv}
        self._process: subprocess.Popen[bytes] | Joined | None = None
        self._oom: OomCounter | None = None
        self._ending = False
        self._others: dict[int, asyncio.Future[int]] = {}
        self.number = launch.kernel.start - 1 if launch.kernel else 0
        self.end: RunEnd | None = None

    @property
    def running(self) -> bool:
        """Whether the script itself has been started and has not ended. Its children may outlive it."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """The script's process, while it runs."""
        process = self._process  # another thread may ask
        return process.pid if process else None

    def prepare(self, argv: list[str], settings: Settings, machine: Machine) -> Prepared:
        """Check everything that can be checked before a run is started.

        *argv* may be as shown on the screen, or as the user gave it.

        Raises:
            StartError: the command does not exist, or the session starts none.
            ValueError: *machine* does not have what *settings* ask for.
        """
        if not self._launch.argv:
            raise StartError(_NO_COMMAND)  # a session that only watches
        limits.check(settings, machine)
        card = machine.whole(settings).size
        environment = launch_environment(self._launch.environment, settings, machine.uuids, card)
        # For an argument that was made readable to be shown, take the original that the user gave.
        given = [self._given.get(argument, argument) for argument in argv]
        check_command(given, self._launch.cwd, environment)
        environment = with_hook(environment, self._launch, self._hook_socket)
        no_report = None
        if settings.xla_report:
            asked = with_report(environment, xla_folder(self._hook_socket))
            if isinstance(asked, Refused):
                no_report = asked
            else:
                environment = asked
        return Prepared(given, [readable(argument) for argument in argv], environment, settings, no_report)

    def start(self, run: Prepared) -> None:
        """Start the next run and publish it.

        Raises:
            StartError: the run cannot be started.
        """
        argv, environment = run.argv, run.environment
        kernel = self._launch.kernel
        try:
            if kernel is not None:
                self._process = Joined(kernel.pid, self._finish)
            else:
                self._process = self._spawn(argv, environment)
        except ProcessLookupError:
            raise StartError(f"there is no process {kernel.pid if kernel else ''}", 1) from None
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise start_error(argv[0], error) from None
            # A script whose first line names no interpreter: run it with sh, as shells do.
            found = shutil.which(argv[0], path=environment.get("PATH")) or argv[0]
            self._process = self._spawn(["/bin/sh", found, *argv[1:]], environment)
        except subprocess.SubprocessError as error:
            raise StartError(f"{argv[0]}: cannot be started: {error}", _NOT_STARTED) from None
        self._oom = OomCounter()
        self.number += 1
        self.end = None
        self._ending = False
        self._stream.publish(
            Run(
                t=self._stream.now(),
                run=self.number,
                pid=self._process.pid,
                argv=run.shown,
                cwd=readable(self._launch.cwd),
                settings=run.settings,
                kernel=readable(kernel.connection) if kernel else None,
                notebook=readable(kernel.notebook) if kernel and kernel.notebook else None,
                earlier=kernel.earlier if kernel else (),
                variables=named_variables(run.shown, self._launch.cwd, environment),
            )
        )

    def will_be_ended(self) -> None:
        """Note that a SIGKILL of the present run will come from tfmemtop, and not from the Linux kernel."""
        self._ending = True

    def adopt(self, pid: int) -> "asyncio.Future[int]":
        """Return what becomes the wait status of *pid*, a child that is not the script, when that has ended."""
        self._others[pid] = asyncio.get_running_loop().create_future()
        return self._others[pid]

    def reap(self) -> None:
        """Collect the status of every child that has ended. Publish :class:`RunEnd` if the script is among them."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self._process is not None and pid == self._process.pid:
                self._finish(os.waitstatus_to_exitcode(status))
            elif pid in self._others:
                self._others.pop(pid).set_result(status)

    def _finish(self, code: int | None) -> None:
        """Handle the end of the script with exit code *code*, as in Popen; ``None`` if that is not known."""
        assert self._process is not None and self._oom is not None
        self._process.returncode = code  # Popen would otherwise wait for a process that has already been collected
        self._process = None
        for drain in self._drains:
            self._attempt(drain)
        # A shell reports with an exit code that its command was killed.
        killed = code in (-signal.SIGKILL, SIGNALLED + signal.SIGKILL) and not self._ending
        self.end = RunEnd(
            t=self._stream.now(),
            run=self.number,
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            oom_killed=killed and self._oom.rose(),
        )
        self._stream.publish(self.end)

    def _attempt(self, drain: Callable[[], None]) -> None:
        try:
            drain()
        except Exception as error:
            # The end of the run is published even if other events are lost.
            complain()
            self._stream.notice("run_end", NoticeKind.LAST_READINGS_LOST, detail=f"{type(error).__name__}: {error}")

    def _spawn(self, argv: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        stdio = None if self._terminal is None else self._terminal.slave
        return subprocess.Popen(
            argv,
            env=environment,
            stdin=stdio,
            stdout=stdio,
            stderr=stdio,
            preexec_fn=self._become_the_script,
            # Our own are close-on-exec. Those that the user's shell opened for the script must reach it.
            close_fds=False,
        )

    def _become_the_script(self) -> None:
        """Set up the script's terminal, folder and signals. Called in the child process, before its exec."""
        if self._terminal is not None:
            self._terminal.take_over()
        try:
            os.chdir(self._launch.cwd)
        except OSError:
            os.fchdir(self._folder)
        resource.setrlimit(resource.RLIMIT_NOFILE, _GIVEN)
        for number in signal.valid_signals():
            with suppress(OSError):  # KILL and STOP, which cannot be set
                signal.signal(number, signal.SIG_IGN if number in self._launch.ignored else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._launch.blocked)


class Joined:
    """A script that is not a child of the engine: another program starts and ends it, as Jupyter does with a kernel.

    At the end of the process *pid*, *ended* is called with the exit code as in ``subprocess.Popen``, or ``None`` if it
    is not known: the code is read while the process is a zombie, and its parent may collect it first. A file descriptor
    of the process (a pidfd) reports the end. It never refers to a later process with the same number. Needs the running
    loop.

    Raises:
        ProcessLookupError: there is no process with that number.
    """

    def __init__(self, pid: int, ended: Callable[[int | None], None]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._process = HostProcess(pid)
        try:
            self._descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except OSError:  # before Linux 5.3, or the system does not offer it
            self._loop.call_later(_LOOK_S, self._look)
        else:
            self._loop.add_reader(self._descriptor, self._over)

    def _over(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._ended(exit_code(self.pid))

    def _look(self) -> None:
        if self._process.is_alive():
            self._loop.call_later(_LOOK_S, self._look)
        else:
            self._ended(exit_code(self.pid))


def allow_many_files() -> None:
    """Raise this process's limit on open files to 65,536, or as far as its hard limit allows.

    The engine needs enough for a thousand hooks. The script gets the original limit.
    """
    soft, hard = _GIVEN
    if soft != resource.RLIM_INFINITY and soft < _ENOUGH:
        most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


_NO_COMMAND = "no command to start"
_MISTAKE, _NOT_STARTED, _NOT_FOUND = 2, 126, 127  # exit codes; a shell has the last two for commands


def check_command(argv: list[str], cwd: str, environment: dict[str, str]) -> None:
    """Check everything about a command that can be checked before it is started.

    Raises:
        StartError: the command cannot be started.
    """
    if not argv or not argv[0]:
        raise StartError(_NO_COMMAND)
    name = argv[0]
    if "/" not in name:
        if shutil.which(name, path=environment.get("PATH", os.defpath)) is None:
            raise StartError(f"{name}: command not found", _NOT_FOUND)
        return
    path = Path(cwd, name)
    if not Path(cwd).is_dir():
        return  # the folder has been removed and is empty; for an absolute path, the exec itself reports errors
    if not path.exists():
        raise StartError(f"{name}: no such file", _NOT_FOUND)
    if path.is_dir():
        raise StartError(f"{name}: is a directory", _NOT_STARTED)
    if not os.access(path, os.X_OK):
        raise StartError(f"{name}: not executable", _NOT_STARTED)


def start_error(name: str, error: OSError) -> StartError:
    """Return what *error* means when a command that passed :func:`check_command` was started."""
    if isinstance(error, FileNotFoundError):
        # The file exists, so its interpreter is missing.
        return StartError(f"{name}: the interpreter named in its first line is not there", _NOT_FOUND)
    return StartError(f"{name}: {error.strerror or error}", _NOT_STARTED)


REFUSALS = (Refusal, ValueError, OSError)
"""The exceptions of a start that fails for a foreseen reason."""


def unstarted(error: Exception) -> Launched:
    """Return the answer for a start that failed with *error*."""
    if isinstance(error, Refusal):
        return Launched(error=str(error), exit_code=error.exit_code)
    if isinstance(error, REFUSALS):
        return Launched(error=reason(error), exit_code=_MISTAKE)
    return without_engine(facts_of(error))
