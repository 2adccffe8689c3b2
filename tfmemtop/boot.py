"""Starts one of tfmemtop's own Python processes in isolation: ``python -I -S boot.py MODULE [ARGUMENT…]``.

The user's ``PYTHON*`` variables, ``PYTHONPATH``, working folder and ``sitecustomize`` are meant for the user's program.
In our own processes a foreign ``psutil``, a ``signal.py`` or a module that prints could do anything. So each of our
processes starts with ``-I -S``, and this file then adds the folders of the installed packages, and nothing else.

The installed command is :func:`start`, which replaces the Python that the installer has chosen by such a process. Up to
then, that Python heeds the user's variables. So this file begins with only those modules that each Python has loaded.
"""

import os
import sys

KEEPER = "pty-keeper"
"""The name that the process that holds the script's terminal gives itself; ``/proc/PID/cmdline`` shows it, too."""

ENGINE = "tfmemtop.engine.__main__"
"""The module with which that process starts."""

_NEEDED = ("msgspec", "psutil", "pynvml", "pyte", "setproctitle", "textual")
_FIRST = 1  # the process number of the first process of a container

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
    return dict(entry.split(b"=", 1) for entry in entries if entry.find(b"=") > 0)


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
        code = 130
    sys.exit(code)


def _heed_signals() -> None:
    """Let the signals that end other processes end this one too, until the command handles them itself.

    The kernel gives the first process of a container (PID 1) only those signals for which it has a handler.
    """
    import signal

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
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
    from importlib.machinery import PathFinder

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
    import signal

    # Python itself ignores these two from its start on. Whether the parent did cannot be known.
    known = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
    ignored.extend(sorted(int(number) for number in known if signal.getsignal(number) == signal.SIG_IGN))
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
