"""Signals: what is ignored, blocked, caught, pending, or deadly."""

import signal

from tests.tools.corpus.script import Script, py, sh

_STATE = "grep -E '^(SigBlk|SigIgn|ShdPnd)' /proc/self/status"


def _ignore(*numbers: int) -> None:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def _block(*numbers: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)


_DEADLY = {"HUP": 1, "INT": 2, "ABRT": 6, "KILL": 9, "SEGV": 11, "PIPE": 13, "TERM": 15, "RT": 40}

SCRIPTS: tuple[Script, ...] = (
    sh("signals-as-given", "masks and ignored signals of a plain start", _STATE, live=True, quick=True),
    sh("signals-several-ignored", "SIGHUP, SIGPIPE and SIGCHLD ignored by the parent, a child, and a pipe whose reader exits",
       _STATE + "; true & wait; yes 2>&1 | head -n 2; echo waited", prepare=lambda: _ignore(signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD),
       quick=True),
    sh("signals-chld-blocked", "a parent that blocks SIGCHLD", _STATE + "; echo done",
       prepare=lambda: _block(signal.SIGCHLD), quick=True),
    sh("signals-all-blocked", "a parent that blocks all it can", _STATE,
       prepare=lambda: _block(*(signal.valid_signals() - {signal.SIGCHLD}))),
    sh("signals-real-time-ignored", "RTMIN and XFSZ ignored", _STATE,
       prepare=lambda: _ignore(signal.SIGRTMIN, signal.SIGXFSZ)),
    py("signals-python-sees", "Python's view of every handler", """
import signal
print([(int(n), str(signal.getsignal(n))) for n in signal.valid_signals() if signal.getsignal(n) is not signal.SIG_DFL])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.sigpending(), signal.set_wakeup_fd(-1))
""", filters=("addresses",), live=True),
    *(sh(f"signals-killed-{name.lower()}", f"ended by signal {number}", f"echo before; kill -{number} $$",
         live=name in ("SEGV", "KILL", "PIPE", "INT"), quick=name == "KILL")
      for name, number in _DEADLY.items()),
    py("signals-stopped-and-continued", "stops itself; a child wakes it", """
import os, signal, time
if os.fork() == 0:
    parent = os.getppid()
    while open(f"/proc/{parent}/stat").read().rsplit(")", 1)[1].split()[0] != "T":
        time.sleep(0.01)
    os.kill(parent, signal.SIGCONT)
    os._exit(0)
signal.signal(signal.SIGCONT, lambda *_: print("continued", flush=True))
os.kill(os.getpid(), signal.SIGSTOP)
os.wait()
print("end")
""", live=True),
    py("signals-whole-group", "TERM to its whole group: heard once", """
import os, signal, time
heard = []
signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
os.kill(0, signal.SIGTERM)
until = time.monotonic() + 0.5
while time.monotonic() < until:
    time.sleep(0.05)
print(len(heard))
""", quick=True),
    py("signals-keyboard-interrupt", "SIGINT raised by itself, traceback, ends by it", """
import signal
signal.raise_signal(signal.SIGINT)
""", live=True),
    sh("signals-trap-exit", "traps of a shell, in order", "trap 'echo term' TERM; trap 'echo exit' EXIT; kill -TERM $$; exit 3",
       live=True, quick=True),
    sh("signals-winch", "no change of size is told to a script as it starts",
       "trap 'echo winch' WINCH; i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done; stty size 2>/dev/null; echo end",
       live=True),
)  # fmt: skip
