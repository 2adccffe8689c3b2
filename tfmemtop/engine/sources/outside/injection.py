"""Puts the hook into a process that runs already, if its Python lets other processes run code in it.

This is possible from Python 3.14 on (PEP 768). Python's own function for it, ``sys.remote_exec``, requires a Python of
the same version. So the target's own interpreter is started for a moment, as a helper process. The helper writes the
path of a file into the target's memory. The target's main thread runs that file when it next goes from one instruction
of Python's to another. The file starts a thread and returns. No debugger is used, and nothing waits for the hook.
"""

import asyncio
import os
import shutil
import tempfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tfmemtop.engine.sources.helper_process import HelperProcess
from tfmemtop.engine.sources.hook_absence import is_python
from tfmemtop.engine.sources.outside.library import python_of
from tfmemtop.engine.sources.outside.remote import mappings
from tfmemtop.engine.sources.processes import executable, is_alive, read_command, read_environment, user_ids
from tfmemtop.events import InjectionState

ASK = """
import sys
if not hasattr(sys, "remote_exec"):
    print("old " + ".".join(map(str, sys.version_info[:3])))
else:
    try:
        sys.remote_exec(int(sys.argv[1]), sys.argv[2])
        print("asked")
    except Exception as error:
        while error.__cause__ or error.__context__:
            error = error.__cause__ or error.__context__
        print(type(error).__name__ + ": " + str(error))
"""
"""The program of the helper, which runs in the target's own interpreter. It asks the target to run a file."""

REPLACED = "replaced "
"""The beginning of what a process writes if Python's function that starts threads was replaced in it.

The name of the function follows.
"""

SCRIPT = """\
# tfmemtop has put this file here, to be run once by process {pid}; it deletes itself.
import _thread

def fail(here, text):
    try:
        with open(here + ".failed", "w") as file:
            file.write(text)
    except Exception:
        pass

def begin(main, told, here):
    try:
        import _signal
        import os
        keep = {{_signal.SIGSEGV, _signal.SIGBUS, _signal.SIGFPE, _signal.SIGILL, _signal.SIGABRT}}
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals() - keep)
        with open({hook!r}, "rb") as file:
            code = compile(file.read(), "<tfmemtop sitecustomize.py>", "exec")
        exec(code, {{"__name__": "tfmemtop_hook", "__file__": {hook!r}, "_joined": (told, main)}})
    except BaseException as error:
        fail(here, type(error).__name__ + ": " + str(error))
    finally:
        try:
            os.unlink(here)
            os.rmdir(os.path.dirname(here))
        except OSError:
            pass  # the engine has deleted it, or deletes the folder when it has read what went wrong

if type(_thread.start_new_thread) is not type(len):
    fail({here!r}, "{replaced}_thread.start_new_thread")  # gevent's would run it in this thread
else:
    try:
        _thread.start_new_thread(begin, (_thread.get_ident(), {told!r}, {here!r}))
    except KeyboardInterrupt:
        _thread.interrupt_main()
    except Exception as error:
        fail({here!r}, type(error).__name__ + ": " + str(error))
"""
"""The file that the target itself runs. It starts a thread, and ends. ``format`` fills it in."""


S = InjectionState

FIRST = (3, 14)
"""The first Python that lets other processes run code in it."""

_HOOK = Path(__file__).parents[3] / "inject" / "sitecustomize.py"
_LONGEST = 500  # bytes of a path; Python accepts a few more
_ASKING_S = 60.0
_THEIRS = ("PYTHONHOME", "LD_LIBRARY_PATH")  # variables without which the target's Python may not start
_OFF = "PYTHON_DISABLE_REMOTE_DEBUG"
_PREFIX = "tfmemtop-inject-"


class Unfit(NamedTuple):
    """Why the hook cannot be put into a process."""

    state: InjectionState
    detail: str = ""


def unfit(pid: int) -> Unfit | None:
    """Return why the hook cannot be put into process *pid*, as far as that can be seen; ``None`` if nothing is seen.

    Raises:
        OSError: there is no such process, or it may not be looked at.
    """
    program = executable(pid)
    if not is_python(program):
        return Unfit(S.NOT_PYTHON, os.fsencode(program.rpartition("/")[2]).decode(errors="replace"))
    version = python_of(mappings(pid))
    if version and tuple(map(int, version.split("."))) < FIRST:
        return Unfit(S.OLD_PYTHON, version)
    if user_ids(pid) != {os.geteuid()}:
        return Unfit(S.OTHER_USER)
    if not _sees(pid, _HOOK):
        return Unfit(S.ELSEWHERE)
    if read_environment(pid).get(_OFF, "") or "disable-remote-debug" in _options(read_command(pid)):
        return Unfit(S.DISABLED)
    return None


def _options(command: list[str]) -> set[str]:
    """Return the ``-X`` options in *command* that are Python's own."""
    found: set[str] = set()
    for before, word in pairwise(command):
        if before == "-X":
            found.add(word)
        elif word.startswith("-X"):
            found.add(word[2:])
        elif before not in ("-W", "-X") and not word.startswith("-"):
            break
    return found


def _sees(pid: int, path: Path) -> bool:
    """Return whether process *pid* finds the same file at *path* as this process."""
    try:
        ours, theirs = path.stat(), Path(f"/proc/{pid}/root{path}").stat()
    except OSError:
        return False
    return (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)


class Injection:
    """One attempt to put the hook into process *pid*.

    *told* are the settings that the hook receives: where the engine is, and how to read.
    """

    def __init__(self, pid: int, told: dict[str, str]) -> None:
        self.pid = pid
        self._told = told
        self.answered = False
        """Whether the process has reported the result."""
        self._script: Path | None = None
        self._helper: HelperProcess | None = None

    @property
    def session(self) -> int | None:
        """The process session of the helper process; ``None`` before the helper is started."""
        return self._helper.pid if self._helper is not None else None

    async def ask(self) -> Unfit | None:
        """Ask the target's Python to run the hook as soon as it can. Return why that is not possible, else ``None``."""
        try:
            # In another thread: the folders of the target's Python may be on a disk that does not answer.
            found = await asyncio.to_thread(self._prepare)
            if found is None and self._script is not None:
                said = await self._answer(self._script)
                if not said:
                    self._script = None  # the file stays: the target may have its path
                    return Unfit(S.FAILED, "no answer")
                found = _read(said)
        except PermissionError:
            found = Unfit(S.NOT_ALLOWED)
        except OSError as error:
            found = Unfit(S.FAILED, f"{error.strerror or error}")
        if found is not None:
            self.clear()
        return found

    def _prepare(self) -> Unfit | None:
        """Write the file for the target. Return why that is not possible, as far as that can be seen, else ``None``."""
        _tidy()
        found = unfit(self.pid)
        if found is not None:
            return found
        self._script = self._written()
        seen = _sees(self.pid, self._script) and len(os.fsencode(self._script)) <= _LONGEST
        return None if seen else Unfit(S.ELSEWHERE)

    def failed(self) -> Unfit | None:
        """Return what went wrong when the target ran the file; ``None`` if no failure is known."""
        if self._script is None:
            return None
        try:
            text = self._script.with_name(self._script.name + ".failed").read_text(errors="replace")[:1000]
        except OSError:
            return None
        if not text:
            return None  # the file is being written
        if text.startswith(REPLACED):
            return Unfit(S.REPLACED, text.removeprefix(REPLACED))
        return Unfit(S.FAILED, text)

    def clear(self) -> None:
        """Delete the file. It has been run, or never will be."""
        if self._script is not None:
            shutil.rmtree(self._script.parent, ignore_errors=True)
            self._script = None

    def close(self) -> None:
        """Stop waiting for the helper, and leave the file.

        If the target runs the file later, the hook finds no engine, and the file deletes itself.
        """
        if self._helper is not None:
            self._helper.let_go()

    def _written(self) -> Path:
        # Not in the session's folder, which is deleted with the session: Python reports a missing file on stderr.
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{_namespace()}-{self.pid}-", dir="/tmp"))
        script = folder / "hook.py"
        text = SCRIPT.format(pid=self.pid, hook=str(_HOOK), told=self._told, here=str(script), replaced=REPLACED)
        script.touch(0o600)
        script.write_text(text)
        return script

    async def _answer(self, script: Path) -> str:
        command = read_command(self.pid)[:1] or ["python"]
        # Python finds its standard library by argv[0]. It would search PATH for a name without a folder.
        name = command[0] if command[0].startswith("/") else executable(self.pid)
        theirs = read_environment(self.pid)
        environment: dict[str, str] = {each: theirs[each] for each in _THEIRS if each in theirs}
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes | None] = loop.create_future()
        self._helper = HelperProcess(
            loop,
            [name, "-S", "-s", "-B", "-c", ASK, str(self.pid), str(script)],
            _ASKING_S,
            lambda said: None if done.done() else done.set_result(said),
            environment=environment,
            program=f"/proc/{self.pid}/exe",
        )
        said = await done
        return (said or b"").decode(errors="replace").strip()


def _namespace() -> int:
    """Return the number of this PID namespace, in which a process number is unique. Containers may share a /tmp."""
    return Path("/proc/self/ns/pid").stat().st_ino


def _tidy() -> None:
    """Delete the files that a killed engine has left behind for processes that have ended since."""
    ours = f"{_PREFIX}{_namespace()}-"
    for folder in Path("/tmp").glob(ours + "*"):
        number = folder.name.removeprefix(ours).partition("-")[0]
        with suppress(OSError):
            if number.isdecimal() and not is_alive(int(number)) and folder.stat().st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)


def _read(said: str) -> Unfit | None:
    if said == "asked":
        return None
    if said.startswith("old "):
        return Unfit(S.OLD_PYTHON, said[4:])
    if said.startswith("PermissionError"):
        return Unfit(S.NOT_ALLOWED)
    if "not enabled" in said or "compiled in" in said:
        return Unfit(S.DISABLED)
    return Unfit(S.FAILED, " ".join(said.split())[-300:])
