"""Tools that run other people's code: testers, debuggers, profilers."""

from tests.tools.corpus.script import Script, py, run

_TEST = "def test_fine():\n    assert 1 + 1 == 2\ndef test_wrong(capsys, tmp_path):\n    print('seen')\n    assert capsys.readouterr().out == 'other\\n'\n"
_WORK = "def work(n):\n    return sum(range(n))\nprint(work(10))\n"

SCRIPTS: tuple[Script, ...] = (
    run("tool-pytest", "pytest, one passes, one fails", "{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py",
        files={"test_it.py": _TEST, "pytest.ini": "[pytest]\n"}, filters=("addresses", "durations", "numbers"), needs=("module:pytest",)),
    run("tool-pytest-xdist", "pytest in two processes", "{python}", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_it.py",
        files={"test_it.py": _TEST, "pytest.ini": "[pytest]\n"}, filters=("addresses", "durations", "numbers", "sorted"), needs=("module:xdist",)),
    run("tool-unittest", "unittest", "{python}", "-m", "unittest", "-v", "test_it",
        files={"test_it.py": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(1, 2)\n"}, filters=("durations",)),
    run("tool-doctest", "doctest", "{python}", "-m", "doctest", "it.py", files={"it.py": '"""\n>>> 1 + 1\n3\n"""\n'}),
    run("tool-pdb", "pdb fed from stdin", "{python}", "-m", "pdb", "script.py", source=_WORK, stdin=b"b work\nc\nw\np n\nc\nq\n"),
    run("tool-cprofile", "cProfile: the calls of the script's own functions", "{python}", "-m", "cProfile", "-s", "name", "script.py", source=_WORK, filters=("times",)),
    run("tool-profile-stats", "a profile in a file", "{python}", "-m", "cProfile", "-o", "stats", "script.py", source=_WORK),
    run("tool-trace", "trace --count", "{python}", "-m", "trace", "--trace", "script.py", source=_WORK),
    run("tool-timeit", "timeit", "{python}", "-m", "timeit", "-n", "1", "-r", "1", "pass", filters=("durations", "numbers")),
    run("tool-compileall", "compiles a folder", "{python}", "-m", "compileall", "-q", ".", files={"a.py": "x = 1\n"}),
    run("tool-zipapp", "a zip that runs", "sh", "-c", "mkdir app; echo 'import sys; print(sys.argv[1:])' > app/__main__.py; {python} -m zipapp app -o it.pyz; {python} it.pyz one"),
    run("tool-venv", "makes a virtual environment and runs it", "sh", "-c", "{base} -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'"),
    run("tool-ipython", "IPython", "{python}", "-m", "IPython", "-c", "print(1)", needs=("module:IPython",)),
    run("tool-coverage", "coverage", "sh", "-c", "{python} -m coverage run script.py; {python} -m coverage report", source=_WORK, needs=("module:coverage",)),
    py("tool-gevent", "gevent's patches", "from gevent import monkey\nmonkey.patch_all()\nimport gevent\ngevent.spawn(print, 'green').join()\n", needs=("module:gevent",)),
    py("tool-eventlet", "eventlet's patches", "import eventlet\neventlet.monkey_patch()\neventlet.spawn(print, 'green').wait()\n", needs=("module:eventlet",)),
    py("tool-runpy", "runpy of a module and a path", "import runpy\nprint(runpy.run_path('other.py')['x'], runpy.run_module('other')['x'])\n", files={"other.py": "x = 3\n"}),
    py("tool-code", "code.interact", "import code\ncode.interact(local={'x': 5}, banner='hello', exitmsg='bye')\n", stdin=b"x + 1\n"),
    py("tool-hypothesis", "hypothesis, derandomised", "from hypothesis import given, settings, strategies as st\n@settings(derandomize=True, database=None)\n@given(st.integers())\ndef check(n):\n    assert n == n\ncheck()\nprint('held')\n", needs=("module:hypothesis",)),
    py("tool-numpy", "numpy's errors and threads", "import numpy as np\nprint(np.arange(4).sum(), np.float32(1) / 3)\nnp.seterr(all='raise')\nprint(np.ones((200, 200)) @ np.ones((200, 200)) [:, :1].sum())\n", needs=("module:numpy",)),
    py("tool-psutil", "psutil's view of it", "import psutil\nme = psutil.Process()\nprint(len(me.children()), me.num_threads(), len(me.open_files()), me.num_fds())\n", needs=("module:psutil",)),
    py("tool-ctypes-callback", "a C function calls back", "import ctypes\nkind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))\nvalues = (ctypes.c_int * 3)(3, 1, 2)\nctypes.CDLL(None).qsort(values, 3, 4, kind(lambda a, b: a[0] - b[0]))\nprint(list(values))\n"),
)  # fmt: skip
