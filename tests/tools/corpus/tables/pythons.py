"""Python's options and each of its variables; which module is found under which name; the interpreter's mechanisms."""

from tests.tools.corpus.script import Script, py, run, sh

_ASKS = """
import sys, os, locale, site
print(sys.flags, sys.path, sys.prefix == sys.base_prefix, site.ENABLE_USER_SITE, __debug__, sys.dont_write_bytecode)
print(sys.orig_argv[1:] if hasattr(sys, "orig_argv") else "", sys._xoptions, sys.warnoptions, sys.pycache_prefix)
print(sys.stdout.encoding, sys.getfilesystemencoding(), locale.getpreferredencoding(False), hash("x") == hash("x"))
print(sorted(name for name in os.environ if name.startswith("PYTHON") and name != "PYTHONPATH"))
"""

_VARIABLES = {
    "PYTHONUNBUFFERED": "1", "PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "7", "PYTHONIOENCODING": "latin-1:replace",
    "PYTHONUTF8": "1", "PYTHONWARNINGS": "error::DeprecationWarning", "PYTHONMALLOC": "debug", "PYTHONFAULTHANDLER": "1",
    "PYTHONTRACEMALLOC": "5", "PYTHONASYNCIODEBUG": "1", "PYTHONNOUSERSITE": "1", "PYTHONUSERBASE": "{box}/home/base",
    "PYTHONPYCACHEPREFIX": "{box}/home/pyc", "PYTHONSAFEPATH": "1", "PYTHONSTARTUP": "{cwd}/script.py", "PYTHONCASEOK": "1",
    "PYTHONCOERCECLOCALE": "warn", "PYTHONINTMAXSTRDIGITS": "640", "PYTHONNODEBUGRANGES": "1", "PYTHONBREAKPOINT": "0",
    "PYTHONLEGACYWINDOWSSTDIO": "1", "PYTHONDEVMODE": "1",
}  # fmt: skip


def _shadow(name: str) -> Script:
    return py(
        f"shadow-{name}", f"a module {name}.py of its own, in the working folder", f"import {name}\nprint({name}.mine)\n",
        files={f"{name}.py": f"mine = 'my {name}'\nprint('loaded {name}')\n"}, live=name == "signal",
    )  # fmt: skip


SCRIPTS: tuple[Script, ...] = (
    *(py(f"python-{name[6:].lower()}", f"{name}={value}", _ASKS, environment={name: value},
         live=name in ("PYTHONUNBUFFERED", "PYTHONDEVMODE", "PYTHONSAFEPATH"))
      for name, value in _VARIABLES.items()),
    *(run(f"python-option{option.lower() if option.islower() else option}", f"python {option}", "{python}", *option.split(), "-c", _ASKS,
          live=option == "-I")
      for option in ("-I", "-E", "-S", "-s", "-P", "-B", "-O", "-OO", "-u", "-b", "-R", "-d", "-X dev",
                     "-X utf8", "-X tracemalloc=2", "-X int_max_str_digits=0", "-X frozen_modules=off", "-W error")),
    run("python-inspect", "PYTHONINSPECT: a prompt at the end", "{python}", "-c", "print(1)", environment={"PYTHONINSPECT": "1"}),
    run("python-variables-sh", "several Python variables, and a command that is not Python", "sh", "-c", "env | grep ^PYTHON[DHIUV] | sort",
        environment={"PYTHONINSPECT": "1", "PYTHONHOME": "/nowhere", "PYTHONVERBOSE": "2", "PYTHONDEBUG": "1", "PYTHONUTF8": "1",
                     "PYTHONDEVMODE": "1"}),
    run("python-bytecode", "bytecode is written where it would be", "{python}", "-c", "import helper; print(helper.x)",
        files={"helper.py": "x = 1\n"}, environment={"PYTHONDONTWRITEBYTECODE": None}),
    run("python-stdin", "a program from stdin", "{python}", "-", "argument", stdin=b"import sys\nprint(sys.argv, __name__)\n"),
    run("python-interactive", "an interactive Python on a pipe", "{python}", "-i", "-q", stdin=b"x = 1\nx + 1\n1 / 0\n"),
    run("python-version", "-V and -VV", "{python}", "-VV", live=True),
    run("python-base", "the interpreter behind the virtual environment", "{base}", "-c", "import sys; print(sys.prefix == sys.base_prefix)"),
    run("python-tool-json", "the standard library's own tools", "{python}", "-m", "json.tool", stdin=b'{"a": [1]}', quick=True),
    sh("path-psutil-of-another", "a psutil that was built for another Python", "sleep 0.2; echo ran; exit 4",
       files={"site/psutil/__init__.py": "raise ImportError('built for another Python')\n"}, environment={"PYTHONPATH": "{cwd}/site"},
       live=True),
    sh("path-our-modules-shadowed", "msgspec, textual, rich, pyte of another kind", "echo ran; exit 4",
       files={f"site/{name}.py": "raise ImportError('mine')\n" for name in ("msgspec", "textual", "rich", "pyte", "pynvml", "wcwidth")},
       environment={"PYTHONPATH": "{cwd}/site"}, live=True),
    sh("path-all-shadowed", "PYTHONPATH shadows our dependencies, the standard library and tfmemtop itself; the command is not Python",
       "echo ran; exit 4", environment={"PYTHONPATH": "{cwd}/site"},
       files={f"site/{name}.py": "raise SystemExit('not that one')\n" for name in ("msgspec", "pynvml", "signal", "json", "tempfile", "tfmemtop")}),
    *(_shadow(name) for name in ("signal", "json", "typing", "tensorflow")),
    py("shadow-tensorflow-package", "a package called tensorflow that is none", "import tensorflow, tensorflow.python\nprint(tensorflow.x)\n",
       files={"tensorflow/__init__.py": "x = 'not that one'\n", "tensorflow/python/__init__.py": "print('python')\n"}),
    py("shadow-site", "site.py of its own", "print('script')\n", files={"site.py": "print('my site')\n"}),
    Script(name="site-prints-unbuffered", exercises="the same, unbuffered, before a shell", command=("sh", "-c", "echo ran; exit 5"),
           files={"site/sitecustomize.py": "print('from sitecustomize')\n"},
           environment={"PYTHONPATH": "{cwd}/site", "PYTHONUNBUFFERED": "1"}, live=True),
    Script(name="site-exits-sh", exercises="one that ends every Python, before a shell", command=("sh", "-c", "echo ran"),
           files={"site/sitecustomize.py": "import sys\nsys.exit(5)\n"}, environment={"PYTHONPATH": "{cwd}/site"}, live=True),
    run("site-user", "a usercustomize in the user's own folder", "sh", "-c",
        "d=$({base} -m site --user-site); mkdir -p $d; echo 'print(\"usercustomize\")' > $d/usercustomize.py; {base} -c 'print(1)'"),
    run("site-pth", "a .pth file with code", "sh", "-c",
        "d=$({base} -m site --user-site); mkdir -p $d; echo 'import sys; print(\"pth\", len(sys.argv))' > $d/x.pth; {base} -c 'print(1)'"),
    py("interp-threads-none", "no thread of ours before TensorFlow", """
import os, sys, threading
print(threading.active_count(), len(os.listdir("/proc/self/task")), len(sys._current_frames()))
""", live=True),
    py("interp-modules", "which modules are loaded at the start", "import sys\nprint(sorted(sys.modules))\n"),
    py("interp-tracemalloc", "which files tracemalloc sees allocate", """
import tracemalloc
tracemalloc.start(5)
import colorsys
snapshot = tracemalloc.take_snapshot()
print(sorted({stat.traceback[0].filename.rsplit("/", 1)[-1] for stat in snapshot.statistics("filename")}))
"""),
    py("interp-subinterpreter", "another interpreter in the process", """
try:
    import _xxsubinterpreters as sub
except ImportError:
    import _interpreters as sub
id = sub.create()
sub.run_string(id, "print('inside', flush=True)") if hasattr(sub, "run_string") else sub.exec(id, "print('inside', flush=True)")
sub.destroy(id)
""", filters=("numbers",)),
)  # fmt: skip
