"""How programs end: signals, exit codes, exceptions in odd places, crashes, and what is printed while Python ends.

Python has buffered the output by then: no script of the last rows has PYTHONUNBUFFERED.
"""

import signal

from tests.tools.corpus.script import Script, py, run, sh

_STATE = "grep -E '^(SigBlk|SigIgn|ShdPnd)' /proc/self/status"


def _ignore(*numbers: int) -> None:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def _block(*numbers: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)


_DEADLY = {"HUP": 1, "INT": 2, "ABRT": 6, "KILL": 9, "SEGV": 11, "PIPE": 13, "TERM": 15, "RT": 40}


_CODES = {"seven": "7", "big": "259", "text": "'said why'", "none": "None"}


_HELD = """
import sys
import tensorflow as tf
class Held:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("end of", self.name)
"""


def _ends(name: str, exercises: str, source: str, **rest: object) -> Script:
    return py(f"ends-{name}", exercises, _HELD + source, tensorflow=True, **{"filters": ("log", "addresses"), **rest})


_GLOBALS = "one, two = Held('one'), Held('two')\nprint('best epoch: 3')\n"

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
    *(py(f"exit-{name}", f"sys.exit({code})", f"import sys\nprint('so far')\nsys.exit({code})\n",
         live=name in ("seven", "text"), quick=name == "big")
      for name, code in _CODES.items()),
    py("exit-at-once", "os._exit with a buffer that is full", "import os\nprint('lost')\nos._exit(9)\n", live=True),
    py("exit-exception", "an exception nobody catches", "print('one')\nraise ValueError('mine')\n", live=True),
    py("exit-atexit-none-of-ours", "how many are registered", """
import atexit
print(atexit._ncallbacks())
"""),
    py("exit-faulthandler-segv", "faulthandler tells of a crash", """
import faulthandler, signal, os
faulthandler.enable()
os.kill(os.getpid(), signal.SIGSEGV)
""", filters=("addresses",), live=True),
    py("exit-exec", "becomes another program", "import os\nos.execvp('sh', ['sh', '-c', 'echo became; exit 6'])\n", live=True),
    run("exit-no-file", "no such script", "{python}", "nothing-here.py", live=True),
    sh("exit-shell-137-itself", "an exit code that looks like a kill", "exit 137"),
    sh("exit-nested-signal", "a child ended by a signal, told by its shell", "sh -c 'kill -SEGV $$'; echo $?; exit $?"),
    _ends("pipe", "global variables, to a pipe", _GLOBALS, live=True, quick=True),
    _ends("used", "after operations", "x = tf.Variable(tf.ones([9]))\ny = tf.function(lambda: x + 1)()\n" + _GLOBALS, live=True),
    _ends("operation", "an operation and a tf.function in a finalizer", """
double = tf.function(lambda x: x * 2)
class Last(Held):
    def __del__(self, double=double, ones=tf.ones):
        print(double(ones([2])).numpy())
last = Last("last")
double(tf.ones([2]))
"""),
    _ends("stdout-own", "a stream of the script's in the place of stdout", """
import io
sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), write_through=False)
""" + _GLOBALS),
    _ends("finders", "a finder, an excepthook, a signal's handler, an exit's", """
import atexit, signal
class Called(Held):
    def __call__(self, *arguments):
        print("called", self.name)
    def find_spec(self, name, path=None, target=None):
        return None
sys.meta_path.append(Called("finder"))
sys.excepthook = Called("excepthook")
signal.signal(signal.SIGUSR1, Called("handler"))
atexit.register(Called("exit"))
"""),
)  # fmt: skip
