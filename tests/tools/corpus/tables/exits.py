"""Ways to end: codes, exceptions in odd places, crashes."""

from tests.tools.corpus.script import Script, py, run, sh

_CODES = {
    "seven": "7", "big": "259", "negative": "-1", "text": "'said why'", "none": "None", "float": "3.5",
    "tuple": "(1, 2)", "true": "True", "huge": "10 ** 30", "empty": "''",
}  # fmt: skip

SCRIPTS: tuple[Script, ...] = (
    *(py(f"exit-{name}", f"sys.exit({code})", f"import sys\nprint('so far')\nsys.exit({code})\n",
         live=name in ("seven", "text"), quick=name == "big")
      for name, code in _CODES.items()),
    py("exit-at-once", "os._exit with a buffer that is full", "import os\nprint('lost')\nos._exit(9)\n", live=True),
    py("exit-exception", "an exception nobody catches", "print('one')\nraise ValueError('mine')\n", live=True, quick=True),
    py("exit-chain", "causes and contexts, notes, groups", """
import sys
try:
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise KeyError("second") from error
except KeyError as error:
    if sys.version_info >= (3, 11):
        error.add_note("a note")
        raise ExceptionGroup("group", [error, OSError(2, "gone")])
    raise
"""),
    py("exit-recursion", "a recursion without end", "def again():\n    again()\nagain()\n"),
    py("exit-memory", "MemoryError", "x = bytearray(1 << 62)\n"),
    py("exit-base-exception", "a class of its own", "class Mine(BaseException): pass\nraise Mine(1)\n"),
    py("exit-in-finally", "exit code from a finally", "import sys\ntry:\n    raise KeyError\nfinally:\n    sys.exit(4)\n"),
    py("exit-atexit-order", "atexit in order, one raises", """
import atexit, sys
for number in range(3):
    atexit.register(print, "bye", number)
atexit.register(lambda: 1 / 0)
atexit.register(sys.exit, 5)
print("end")
""", filters=("addresses",)),
    py("exit-atexit-none-of-ours", "how many are registered", """
import atexit
print(atexit._ncallbacks())
"""),
    py("exit-finalizers", "finalizers at the end, one raises", """
import weakref
class Held:
    def __del__(self):
        print("deleted", flush=True)
        raise RuntimeError("in __del__")
held = Held()
held.self = held
weakref.finalize(held, print, "finalized")
""", filters=("addresses",)),
    py("exit-module-teardown", "what is still there when modules go", """
import sys
class Late:
    def __del__(self, sys=sys, print=print):
        print(sys.is_finalizing() if hasattr(sys, "is_finalizing") else None, len(sys.meta_path or ()) if sys.meta_path is None else "")
late = Late()
"""),
    py("exit-excepthook", "a hook of its own that fails", """
import sys
def hook(kind, value, trace):
    print("hook", kind.__name__)
    raise OSError("hook failed")
sys.excepthook = hook
raise LookupError("first")
"""),
    py("exit-unraisable", "a hook for what cannot be raised", """
import sys
sys.unraisablehook = lambda found: print("unraisable", found.exc_value, found.err_msg)
class Held:
    def __del__(self):
        raise ValueError("gone")
Held()
"""),
    py("exit-faulthandler-segv", "faulthandler tells of a crash", """
import faulthandler, signal, os
faulthandler.enable()
os.kill(os.getpid(), signal.SIGSEGV)
""", filters=("addresses",), live=True),
    py("exit-faulthandler-later", "faulthandler ends a hang", """
import faulthandler, time
faulthandler.dump_traceback_later(0.2, exit=True)
time.sleep(10)
""", filters=("addresses",)),
    py("exit-abort", "abort from C", "import ctypes\nprint('x', flush=True)\nctypes.CDLL(None).abort()\n"),
    py("exit-c", "the C library's exit", "import ctypes\nctypes.CDLL(None).exit(11)\n"),
    py("exit-quick", "_Exit from C, the buffer lost", "import ctypes\nprint('lost')\nctypes.CDLL(None)._Exit(12)\n"),
    py("exit-null", "a real crash", "import ctypes\nctypes.string_at(0)\n"),
    py("exit-exec", "becomes another program", "import os\nos.execvp('sh', ['sh', '-c', 'echo became; exit 6'])\n", live=True),
    py("exit-thread-exception", "an exception in a thread, code 0", """
import threading
def work():
    raise ValueError("in a thread")
thread = threading.Thread(target=work, name="worker")
thread.start()
thread.join()
print(threading.active_count())
"""),
    py("exit-system-exit-in-thread", "SystemExit in a thread ends only that", """
import sys, threading
thread = threading.Thread(target=sys.exit, args=(3,))
thread.start()
thread.join()
print("goes on")
"""),
    py("exit-syntax", "a file that does not parse", "def broken(:\n"),
    py("exit-null-byte", "a file with a null byte", "print(1)\n\0\n"),
    run("exit-no-file", "no such script", "{python}", "nothing-here.py", live=True),
    run("exit-no-module", "no such module", "{python}", "-m", "nothing_here"),
    run("exit-c-option", "-c with an exception", "{python}", "-c", "print(1); raise KeyError('k')"),
    py("exit-closed-stdout", "closes its stdout itself", "import os, sys\nprint('x')\nsys.stdout.flush()\nos.close(1)\nprint('y')\n"),
    py("exit-generator", "a generator that ignores its end", """
def stubborn():
    while True:
        try:
            yield 1
        except GeneratorExit:
            print("no")
            raise RuntimeError("stubborn")
it = stubborn()
next(it)
""", filters=("addresses",)),
    sh("exit-shell-255", "255 and above", "exit 255"),
    sh("exit-shell-137-itself", "an exit code that looks like a kill", "exit 137"),
    sh("exit-nested-signal", "a child ended by a signal, told by its shell", "sh -c 'kill -SEGV $$'; echo $?; exit $?"),
)  # fmt: skip
