"""Tools that run other people's code: testers, debuggers, profilers."""

from tests.tools.corpus.script import Script, py, run

_TEST = "def test_fine():\n    assert 1 + 1 == 2\ndef test_wrong(capsys, tmp_path):\n    print('seen')\n    assert capsys.readouterr().out == 'other\\n'\n"
_WORK = "def work(n):\n    return sum(range(n))\nprint(work(10))\n"

SCRIPTS: tuple[Script, ...] = (
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
