"""Exit codes as shells have them."""

import signal

SIGNALLED = 128
"""A program that signal n ended counts as exit code 128+n."""

INTERRUPTED = SIGNALLED + signal.SIGINT


EFFECTS: dict[signal.Signals, str] = {
    signal.SIGTERM: "end; the process may clean up",
    signal.SIGKILL: "end at once; the process cannot prevent it",
    signal.SIGINT: "as Ctrl-C in its terminal",
    signal.SIGHUP: "its terminal is gone",
    signal.SIGQUIT: "end with a core dump",
    signal.SIGUSR1: "the script's own",
    signal.SIGUSR2: "the script's own",
    signal.SIGSTOP: "pause; it keeps its memory",
    signal.SIGCONT: "go on after a pause",
    signal.SIGABRT: "abort",
    signal.SIGALRM: "alarm",
    signal.SIGPIPE: "its output has no reader any more",
    signal.SIGTSTP: "as Ctrl-Z in its terminal",
    signal.SIGWINCH: "its terminal has another size",
}
"""What each signal does, in the order of the dialog's list."""


def signal_name(number: int) -> str:
    """Return the name of a signal: ``SIGTERM`` for 15; ``signal 40`` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
