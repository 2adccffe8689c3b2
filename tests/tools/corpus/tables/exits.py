"""Ways to end: codes, exceptions in odd places, crashes."""

from tests.tools.corpus.script import Script, py, run, sh

_CODES = {"seven": "7", "big": "259", "text": "'said why'", "none": "None"}

SCRIPTS: tuple[Script, ...] = (
    *(py(f"exit-{name}", f"sys.exit({code})", f"import sys\nprint('so far')\nsys.exit({code})\n",
         live=name in ("seven", "text"), quick=name == "big")
      for name, code in _CODES.items()),
    py("exit-at-once", "os._exit with a buffer that is full", "import os\nprint('lost')\nos._exit(9)\n", live=True),
    py("exit-exception", "an exception nobody catches", "print('one')\nraise ValueError('mine')\n", live=True, quick=True),
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
)  # fmt: skip
