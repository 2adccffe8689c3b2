"""Starts one of tfmemtop's own Python processes in isolation: ``python -I -S boot.py MODULE [ARGUMENT…]``.

The user's ``PYTHON*`` variables, ``PYTHONPATH``, working folder and ``sitecustomize`` are meant for the user's program.
In our own processes a foreign ``psutil``, a ``signal.py`` or a module that prints could do anything. So each of our
processes starts with ``-I -S``, and this file then adds the folders of the installed packages, and nothing else.

Python runs this file by its path, before ``tfmemtop`` can be imported. So it imports only modules that load fast.
"""

import os
import signal
import sys
from importlib.machinery import PathFinder

IGNORED = "TFMEMTOP_IGNORED"
"""The variable in which the shell script ``tfmemtop`` passes the signals that were ignored before Python started.

Its value is a hexadecimal mask, as in the line ``SigIgn`` of ``/proc/PID/status``.
"""

KEEPER = "pty-keeper"
"""The name that the process that holds the script's terminal gives itself; ``/proc/PID/cmdline`` shows it, too."""

_NEEDED = ("msgspec", "psutil", "pynvml", "pyte", "textual")
_FIRST = 1  # the process number of the first process of a container
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PYTHON_IGNORES = {signal.SIGPIPE, signal.SIGXFSZ}  # Python itself ignores these two from its start on

SCREENS = "tfmemtop.cli.main"
"""The module of the command, which may show a screen."""

ignored: "list[int]" = []
"""Signals that this process has ignored since its start, because its parent did.

A program that is started for the user must ignore them, too.
"""
blocked: "list[int]" = []
"""Signals that have been blocked in this process since its start. A program for the user must block them, too."""


def command(module: str, *arguments: str) -> "list[str]":
    """Return the command line that starts an isolated Python, which calls ``main(arguments)`` of *module*."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), module, *arguments]


def start() -> None:
    """Replace this process by an isolated one that runs the same command. This is the installed command."""
    os.execve(sys.executable, command(SCREENS, *sys.argv[1:]), given_environment())


def given_environment() -> "dict[bytes, bytes]":
    """Return the environment that this process received. Python itself may have set ``LC_CTYPE`` since (PEP 538)."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return dict(os.environb)
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)


def main() -> None:
    """Restore what Python's start has changed, find the packages, and run the module that ``sys.argv[1]`` names."""
    if os.getpid() == _FIRST:
        _heed_signals()
    try:
        _restore_environment()
        code = _run()
    except KeyboardInterrupt:
        # This early, nothing has been started that would have to be ended. The code is `exit_codes.INTERRUPTED`, which
        # cannot be imported here.
        code = 128 + signal.SIGINT
    sys.exit(code)


def _heed_signals() -> None:
    """Let the signals that end other processes end this one too, until the command handles them itself.

    The kernel gives the first process of a container (PID 1) only those signals for which it has a handler.
    """
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _: object) -> None:
    os._exit(128 + number)


def _run() -> int:
    _find_packages()
    _note_signals()
    _name_process()
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    from importlib import import_module

    code: int = import_module(module).main(sys.argv[1:])
    return code


def _find_packages() -> None:
    import site

    # sitecustomize and usercustomize are meant for the user's programs. A Linux distribution's own may print, too.
    site.execsitecustomize = site.execusercustomize = lambda: None
    site.main()
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if ours not in sys.path:
        # We are in a checkout, or among the packages that are installed for this user only, which -I leaves out.
        site.addsitedir(ours) if ours.endswith("-packages") else sys.path.append(ours)
    if any(PathFinder.find_spec(name) is None for name in _NEEDED):
        # The packages are in a folder that only PYTHONPATH names. It comes last: it may contain other modules.
        sys.path += [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(part)]


def _restore_environment() -> None:
    given = given_environment()
    for name in [name for name in os.environb if name not in given]:
        del os.environb[name]
    if b"LC_CTYPE" in given and os.environb[b"LC_CTYPE"] != given[b"LC_CTYPE"]:
        os.environb[b"LC_CTYPE"] = given[b"LC_CTYPE"]


def _note_signals() -> None:
    """Record which signals are ignored and blocked, and set SIGCHLD to its default.

    If SIGCHLD stayed ignored, this process could not learn how its children ended.
    """
    mask = int(os.environ.pop(IGNORED, "0") or "0", 16)
    for number in sorted(signal.valid_signals()):
        noted = bool(mask >> (number - 1) & 1)
        if noted if number in _PYTHON_IGNORES else signal.getsignal(number) == signal.SIG_IGN:
            ignored.append(int(number))
    blocked.extend(sorted(map(int, signal.pthread_sigmask(signal.SIG_SETMASK, ()))))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _name_process() -> None:
    """Name this process ``tfmemtop`` instead of ``python`` in lists of processes."""
    try:
        with open("/proc/self/comm", "w") as file:
            file.write("tfmemtop")
    except OSError:
        return  # nothing depends on the name


if __name__ == "__main__":
    sys.modules["tfmemtop.boot"] = sys.modules["__main__"]
    main()
