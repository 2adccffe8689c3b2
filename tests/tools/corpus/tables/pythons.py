"""Python's options and each of its variables."""

from tests.tools.corpus.script import Script, py, run

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

_QUICK = ("PYTHONUNBUFFERED",)

SCRIPTS: tuple[Script, ...] = (
    *(py(f"python-{name[6:].lower()}", f"{name}={value}", _ASKS, environment={name: value},
         live=name in ("PYTHONUNBUFFERED", "PYTHONDEVMODE", "PYTHONSAFEPATH"), quick=name in _QUICK)
      for name, value in _VARIABLES.items()),
    *(run(f"python-option{option.lower() if option.islower() else option}", f"python {option}", "{python}", *option.split(), "-c", _ASKS,
          live=option == "-I")
      for option in ("-I", "-E", "-S", "-s", "-P", "-B", "-O", "-OO", "-u", "-b", "-R", "-d", "-X dev",
                     "-X utf8", "-X tracemalloc=2", "-X int_max_str_digits=0", "-X frozen_modules=off", "-W error")),
    run("python-inspect", "PYTHONINSPECT: a prompt at the end", "{python}", "-c", "print(1)", environment={"PYTHONINSPECT": "1"}),
    run("python-variables-sh", "several Python variables, and a command that is not Python", "sh", "-c", "env | grep ^PYTHON[DHIUV] | sort",
        environment={"PYTHONINSPECT": "1", "PYTHONHOME": "/nowhere", "PYTHONVERBOSE": "2", "PYTHONDEBUG": "1", "PYTHONUTF8": "1",
                     "PYTHONDEVMODE": "1"}, quick=True),
    run("python-bytecode", "bytecode is written where it would be", "{python}", "-c", "import helper; print(helper.x)",
        files={"helper.py": "x = 1\n"}, environment={"PYTHONDONTWRITEBYTECODE": None}),
    run("python-stdin", "a program from stdin", "{python}", "-", "argument", stdin=b"import sys\nprint(sys.argv, __name__)\n"),
    run("python-interactive", "an interactive Python on a pipe", "{python}", "-i", "-q", stdin=b"x = 1\nx + 1\n1 / 0\n"),
    run("python-version", "-V and -VV", "{python}", "-VV", live=True),
    run("python-base", "the interpreter behind the virtual environment", "{base}", "-c", "import sys; print(sys.prefix == sys.base_prefix)"),
    run("python-tool-json", "the standard library's own tools", "{python}", "-m", "json.tool", stdin=b'{"a": [1]}', quick=True),
)  # fmt: skip
