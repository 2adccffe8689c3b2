"""Starting the script with what it is to inherit, and learning how it ended."""

import ctypes
import errno
import os
import shutil
import signal
import subprocess
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tfmemtop.engine.launch import Launch
from tfmemtop.engine.oom import OomCounter
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.terminal import PseudoTerminal
from tfmemtop.events import Run, RunEnd
from tfmemtop.settings import Settings, launch_environment
from tfmemtop.units import format_bytes

_PR_SET_PDEATHSIG = 1

INJECT = Path(__file__).parents[1] / "inject"


class StartError(Exception):
    """The script could not be started; the text is one line for the user, *exit_code* a shell's."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class Runs:
    """The runs of one session, one at a time.

    The script's stdio is the *terminal*; or nothing to read and *output* to write to, in a session of
    its own, which no key of ours reaches; or, with neither, our own.
    """

    def __init__(
        self,
        stream: Stream,
        launch: Launch,
        *,
        hook_socket: Path,
        terminal: PseudoTerminal | None,
        output: int | None = None,
    ) -> None:
        self._stream = stream
        self._launch = launch
        self._hook_socket = hook_socket
        self.dumps = hook_socket.with_name("dumps")  # where TensorFlow writes what a pool was when it ran out
        self._terminal = terminal
        self._output = output
        # Held open: the script starts where the user is, also where that folder has been removed.
        self._folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        # A try of fit is nobody's once fit has gone. The script of the other two goes on.
        self._prctl = ctypes.CDLL(None).prctl if output is not None else None
        self._given: dict[str, str] = {readable(argument): argument for argument in launch.argv}
        self._process: subprocess.Popen[bytes] | None = None
        self._oom: OomCounter | None = None
        self.number = 0
        self.started = 0.0  # seconds since the epoch
        self.end: RunEnd | None = None
        self.ending = False  # we have asked it to end, so a KILL is ours
        self.before_end: Callable[[], None] = lambda: None

    @property
    def mark(self) -> bytes:
        """What stands in the environment of the script and of all that it starts, unless it clears that."""
        return b"TFMEMTOP_SOCKET=" + os.fsencode(self._hook_socket)

    @property
    def running(self) -> bool:
        """Whether the script itself has been started and not ended; its children may outlive it."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """The script's process, while it runs."""
        return self._process.pid if self._process else None

    def prepare(self, argv: list[str], settings: Settings) -> dict[str, str]:
        """The environment of a run, after checking all that can be checked before it is started.

        Raises:
            StartError: the settings do not fit this machine, or there is no such command.
        """
        environment = launch_environment(self._launch.environment, settings, _gpus_for(settings))
        _check_command(self._as_given(argv), self._launch.cwd, environment)
        # The user's stays as it is: an empty part in it means the working folder. Wholly empty it means nothing; then
        # what follows the separator is left out by the hook, unless a script adds to it (PYTHONPATH=$PYTHONPATH:/x).
        users = environment.get("PYTHONPATH", "")
        # Python does not start with an empty part where the working folder has been removed.
        separator = os.pathsep if users or os.fstat(self._folder).st_nlink else ""
        environment["PYTHONPATH"] = f"{INJECT}{separator}{users}"
        environment["TFMEMTOP_SOCKET"] = str(self._hook_socket)
        environment["TFMEMTOP_DUMPS"] = str(self.dumps)
        environment["TFMEMTOP_INTERVAL"] = f"{self._launch.interval_s:g}"
        environment.pop("TFMEMTOP_NO_PROBE", None)  # of a run that this one is part of
        if not self._launch.probe:
            environment["TFMEMTOP_NO_PROBE"] = "1"
        return environment

    def start(self, argv: list[str], settings: Settings) -> None:
        """Start the next run and publish it.

        Raises:
            StartError: it cannot be started.
        """
        environment = self.prepare(argv, settings)
        shown, argv = argv, self._as_given(argv)
        try:
            self._process = self._spawn(argv, environment)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise _start_error(argv[0], error) from None
            # A script without a first line that names its interpreter: shells run it with sh.
            found = shutil.which(argv[0], path=environment.get("PATH")) or argv[0]
            self._process = self._spawn(["/bin/sh", found, *argv[1:]], environment)
        except subprocess.SubprocessError as error:
            raise StartError(f"{argv[0]}: cannot be started: {error}", 126) from None
        self._oom = OomCounter()
        self.number += 1
        self.started = time.time()
        self.end = None
        self.ending = False
        self._stream.publish(
            Run(
                t=0.0,
                run=self.number,
                pid=self._process.pid,
                argv=[readable(argument) for argument in shown],
                cwd=readable(self._launch.cwd),
                settings=settings,
            )
        )

    def reap(self) -> None:
        """Collect every child that has ended; publish :class:`RunEnd` if the script is among them."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self._process is not None and pid == self._process.pid:
                self._finish(os.waitstatus_to_exitcode(status))

    def _finish(self, code: int) -> None:
        assert self._process is not None and self._oom is not None
        self._process.returncode = code  # Popen would otherwise wait for a process that is gone
        self._process = None
        try:
            self.before_end()
        except Exception as error:
            # Whatever else is lost: that the run has ended is told.
            traceback.print_exc()
            self._stream.notice("run_end", "warning", f"the last readings are lost: {type(error).__name__}: {error}")
        # 137 is how a shell reports that its command was killed.
        killed = code in (-9, 137) and not self.ending
        self.end = RunEnd(
            t=0.0,
            run=self.number,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            oom_killed=killed and self._oom.rose(),
        )
        self._stream.publish(self.end)

    def _spawn(self, argv: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        terminal, output = self._terminal, self._output
        if terminal is not None:
            output = terminal.slave
        return subprocess.Popen(
            argv,
            env=environment,
            stdin=terminal.slave if terminal else None if output is None else subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=terminal is None and output is not None,
            preexec_fn=self._become_the_script,
            # Ours are close-on-exec; what the user's shell opened for the script is to reach it.
            close_fds=False,
        )

    def _become_the_script(self) -> None:
        """In the child, before its exec: take over the terminal, the folder and the signals that are the script's."""
        if self._terminal is not None:
            self._terminal.take_over()
        try:
            os.chdir(self._launch.cwd)
        except OSError:
            os.fchdir(self._folder)
        if self._prctl is not None:
            self._prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        for number in signal.valid_signals():
            with suppress(OSError):  # KILL and STOP, which cannot be set
                signal.signal(number, signal.SIG_IGN if number in self._launch.ignored else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._launch.blocked)

    def _as_given(self, argv: list[str]) -> list[str]:
        """*argv* with those arguments as the user gave them that can only be shown readably."""
        return [self._given.get(argument, argument) for argument in argv]


def readable(text: str) -> str:
    """*text* as :func:`os.fsdecode` gives it, fit for UTF-8: a byte that is none of a character as ``\\xff``."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def _gpus_for(settings: Settings) -> list[str]:
    """The GPUs' UUIDs if *settings* need them: asking the driver costs time before the start."""
    if settings.gpus is None and settings.memory_limit is None and settings.allocator is None:
        return []
    from tfmemtop.engine import nvml

    gpus = nvml.list_gpus()
    biggest = max((gpu.total or 0 for gpu in gpus), default=0)
    if settings.memory_limit is not None and 0 < biggest < settings.memory_limit:
        limit, card = format_bytes(settings.memory_limit), format_bytes(biggest)
        raise StartError(f"a limit of {limit} is beyond the card: the largest GPU here has {card}", 2)
    return [gpu.uuid for gpu in gpus]


def _check_command(argv: list[str], cwd: str, environment: dict[str, str]) -> None:
    if not argv or not argv[0]:
        raise StartError("no command to start", 2)
    name = argv[0]
    if "/" not in name:
        if shutil.which(name, path=environment.get("PATH", os.defpath)) is None:
            raise StartError(f"{name}: command not found", 127)
        return
    path = Path(cwd, name)
    if not Path(cwd).is_dir():
        return  # it has been removed, and holds nothing; what an absolute path names is looked for by the kernel
    if not path.exists():
        raise StartError(f"{name}: no such file", 127)
    if path.is_dir():
        raise StartError(f"{name}: is a directory", 126)
    if not os.access(path, os.X_OK):
        raise StartError(f"{name}: is not executable", 126)


def _start_error(name: str, error: OSError) -> StartError:
    if isinstance(error, FileNotFoundError):
        # The file is there, as was checked: what is missing is what its first line names.
        return StartError(f"{name}: the interpreter named in its first line is not there", 127)
    return StartError(f"{name}: {error.strerror or error}", 126)
