"""Commands that are not Python, and tools that run other people's code: testers, debuggers, profilers."""

from tests.tools.corpus.script import Script, py, run, sh

_TEST = "def test_fine():\n    assert 1 + 1 == 2\ndef test_wrong(capsys, tmp_path):\n    print('seen')\n    assert capsys.readouterr().out == 'other\\n'\n"
_WORK = "def work(n):\n    return sum(range(n))\nprint(work(10))\n"

SCRIPTS: tuple[Script, ...] = (
    run("command-true", "the smallest", "true", live=True),
    run("command-false", "code 1", "false", live=True),
    run("command-make", "make, with a target that fails", "make", "-s", files={"Makefile": "all:\n\t@echo built\n\t@exit 3\n"}, needs=("make",), live=True),
    run("command-static-itself", "a program that no loader touches", "busybox", "echo", "static", needs=("busybox",)),
    sh("command-no-shebang", "a script without a first line", "./it one", files={"it": ": begins oddly\necho ran $1\nexit 3\n"},
       quick=True),
    run("command-shebang", "a script with options in its first line", "./it", files={"it": "#!/bin/sh -eu\necho ran\nfalse\necho not\n"}),
    sh("command-yes-head", "yes, cut off", "yes | head -n 3", live=True, quick=True),
    sh("command-monitor", "job control without a terminal", "bash -c 'set -m; sleep 0.05 & wait; echo done'", live=True),
    sh("command-trap-err", "traps of bash", "bash -c 'trap \"echo err \\$?\" ERR; trap \"echo bye\" EXIT; false; exit 9'", live=True),
    run("command-timeout-foreground", "timeout --foreground", "timeout", "--foreground", "-s", "INT", "0.3", "sleep", "20", live=True),
    run("command-setsid-w", "setsid -w", "setsid", "-w", "sh", "-c", "echo away; exit 5", live=True),
    run("command-script", "script, a terminal within", "script", "-qec", "tty | cut -c1-9; stty size", "/dev/null", needs=("script",)),
    run("command-strace", "a tracer around it", "strace", "-o", "/dev/null", "-f", "sh", "-c", "echo traced; exit 4", needs=("strace",)),
    run("command-long-run", "a second of work in small pieces", "sh", "-c", "i=0; while [ $i -lt 20 ]; do echo $i; sleep 0.03; i=$((i+1)); done", live=True),
    run("command-tty", "tty and stty", "sh", "-c", "tty | cut -c1-9; stty -a | sed -n '2,$p'", live=True,
        differs={"live": "Ctrl-Z is the script's: no shell is there to wake a stopped job"}),
    run("command-tput", "tput and colours", "sh", "-c", "tput colors; ls --color=auto -d / ; tput cols", live=True),
    run("tool-pytest", "pytest, one passes, one fails", "{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py",
        files={"test_it.py": _TEST, "pytest.ini": "[pytest]\n"}, filters=("addresses", "durations", "numbers"), needs=("module:pytest",)),
    run("tool-pytest-xdist", "pytest in two processes", "{python}", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_it.py",
        files={"test_it.py": _TEST, "pytest.ini": "[pytest]\n"}, filters=("addresses", "durations", "numbers", "sorted"), needs=("module:xdist",)),
    run("tool-pdb", "pdb fed from stdin", "{python}", "-m", "pdb", "script.py", source=_WORK, stdin=b"b work\nc\nw\np n\nc\nq\n"),
    run("tool-cprofile", "cProfile: the calls of the script's own functions", "{python}", "-m", "cProfile", "-s", "name", "script.py", source=_WORK, filters=("times",)),
    run("tool-venv", "makes a virtual environment and runs it", "sh", "-c", "{base} -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'"),
    run("tool-ipython", "IPython", "{python}", "-m", "IPython", "-c", "print(1)", needs=("module:IPython",)),
    run("tool-coverage", "coverage", "sh", "-c", "{python} -m coverage run script.py; {python} -m coverage report", source=_WORK, needs=("module:coverage",)),
    py("tool-gevent", "gevent's patches", "from gevent import monkey\nmonkey.patch_all()\nimport gevent\ngevent.spawn(print, 'green').join()\n", needs=("module:gevent",)),
    py("tool-numpy", "numpy's errors and threads", "import numpy as np\nprint(np.arange(4).sum(), np.float32(1) / 3)\nnp.seterr(all='raise')\nprint(np.ones((200, 200)) @ np.ones((200, 200)) [:, :1].sum())\n", needs=("module:numpy",)),
    py("tool-psutil", "psutil's view of it", "import psutil\nme = psutil.Process()\nprint(len(me.children()), me.num_threads(), len(me.open_files()), me.num_fds())\n", needs=("module:psutil",)),
)  # fmt: skip
