"""Hook and agent call no function that the script can replace, and import no module that it can replace."""

import ast
import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.hooked import INJECT, VERSION, Monitor, Script, both, outcome, start, working_tensorflow

AGENT = INJECT.parent / "agent"
FILES = sorted(AGENT.rglob("*.py"))
HOOK = ast.parse((INJECT / "sitecustomize.py").read_text())
AT_START = {"_keep", "_step_aside", "_module", "_working_folder"}
"""Functions of the hook that run only before the script starts."""

KEPT = {
    *(node.value for node in ast.walk(HOOK) if isinstance(node, ast.Constant) and isinstance(node.value, str)),
}
STAND_INS = {path.stem for path in (AGENT / "stdlib").glob("[a-z]*.py")}


def at_run_time(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of *tree*, except those that only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "MYPY"):
            continue
        if isinstance(node, ast.stmt):
            yield node
        yield from at_run_time(node)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(AGENT)))
def test_the_agent_imports_what_was_kept_and_calls_what_is_c(path: Path) -> None:
    tree = ast.parse(path.read_text())
    statements = list(at_run_time(tree))
    imports = [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(node in tree.body for node in imports), "what is imported later may be the script's"
    modules: dict[str, str] = {}
    taken: list[tuple[str, str]] = []
    for each in imports:
        if isinstance(each, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in each.names}
        elif not each.level:
            taken += [(str(each.module), alias.name) for alias in each.names]
    for node in (inner for statement in statements for inner in ast.walk(statement)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            taken.append((modules[node.value.id], node.attr))
    for module, name in taken:
        assert module in KEPT | STAND_INS, f"{module} is looked for where the script's own modules are"
        if module in STAND_INS:
            assert hasattr(import_module(f"tfmemtop.agent.stdlib.{module}"), name)
        else:
            found = getattr(import_module(module), name)
            python = inspect.isfunction(found) or inspect.ismodule(found)
            assert not python, f"{module}.{name} is Python code, which calls what the script has replaced"


def test_the_hook_calls_no_function_of_a_module_once_the_script_runs() -> None:
    later = [
        node for node in HOOK.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name not in AT_START
    ]
    assert later
    for node in (inner for each in later for inner in ast.walk(each)):
        assert not isinstance(node, ast.Import | ast.ImportFrom)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("os", "sys")), ast.unparse(
                node
            )


REPLACING = '''
import atexit, builtins, importlib, os, sys, types

MODULES = """time os posix posixpath signal _signal gc json json.encoder json.decoder _json socket _socket sys weakref
_weakref re threading _thread atexit struct _struct ctypes _ctypes binascii builtins functools _functools collections
collections.abc linecache stat _stat errno fcntl io _io operator _operator itertools typing types tokenize codecs enum
subprocess""".split()
if sys.version_info < (3, 10):
    MODULES.remove("atexit")  # the one that is kept there is the one that everybody has
if sys.version_info >= (3, 14):
    MODULES.remove("ctypes"), MODULES.remove("_ctypes")  # so here
    LAYS_OUT = os.path.dirname(os.__file__) + "/ctypes/"  # structures for C, which is told so by nobody
else:
    LAYS_OUT = "nothing does"
FUNCTIONS = types.FunctionType, types.BuiltinFunctionType
getframe, python, startswith = sys._getframe, os.path.dirname(os.__file__), str.startswith
modules = [importlib.import_module(name) for name in MODULES]
ours, called = set(), set()
write, text = os.write, str
atexit.register(lambda: write(1, text([sorted(ours), len(called) > 5]).encode()))

def by_us(frame):
    while frame is not None:
        name = frame.f_code.co_filename
        if startswith(name, "<tfmemtop"):
            return True
        if startswith(name, LAYS_OUT) or not startswith(name, python) or startswith(name, python + "/site-packages"):
            return False
        frame = frame.f_back
    return False

BY_FRAME = {
    "locals": lambda: getframe(2).f_locals,
    "globals": lambda: getframe(2).f_globals,
    "_getframe": lambda depth=0: getframe(depth + 2),
}

def replaced(name, original):
    action = BY_FRAME.get(name.rpartition(".")[2], original)
    def call(*args, **kwargs):
        called.add(name)
        if by_us(getframe(1)):
            ours.add(name)
            raise RuntimeError(name)
        return action(*args, **kwargs)
    functools.update_wrapper(call, original)
    return call

import functools
NOT = {"eval", "exec", "vars", "dir", "_getframemodulename", "__build_class__", "register_at_fork"}
originals = [(module, name, value) for module in modules for name, value in vars(module).items()
             if type(value) in FUNCTIONS and name not in NOT]
replacements = [(module, name, replaced(module.__name__ + "." + name, value)) for module, name, value in originals]

def replace(values, setattr=setattr):
    for module, name, value in values:
        setattr(module, name, value)
'''

USING = (
    REPLACING
    + """
finders = list(sys.meta_path)
replace(replacements)
for finder in finders:
    finder.find_spec("tensorflow.python", None)  # here the agent is loaded
replace(originals)
import tensorflow as tf
from unittest import mock
with mock.patch("time.monotonic", side_effect=list(range(5))) as monotonic, mock.patch("os.getpid") as getpid:
    first = tf.Variable(tf.ones([1000]))
    print(monotonic.call_count, getpid.call_count)
readline = sys.stdin.readline
replace(replacements)
tf.config.set_visible_devices([], "GPU")
kept = tf.Variable(tf.ones([1 << 20]))
for call in (lambda: tf.config.set_visible_devices([], "CPU"), lambda: tf.errors.ResourceExhaustedError(
        None, None, "OOM when allocating")):
    try:
        call()
    except RuntimeError as error:
        print(error)
print("up", flush=True)
readline()
child = os.fork()
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
"""
)


def test_no_function_that_a_script_has_replaced_is_called(monitor: Monitor, script: Script) -> None:
    path = script(USING)
    # From Python 3.12 on, a fork while TensorFlow's threads run gives a warning, which contains the process id.
    bare, hooked = [start(each, path, PYTHONWARNINGS="ignore") for each in (None, monitor)]
    monitor.wait_for(lambda event: event["type"] == "allocator" and event["in_use"] > 4 << 20)
    for command in (
        {"do": "census", "tensors": True},
        {"do": "maps", "wanted": []},
        {"do": "holders"},
        {"do": "lines", "operations": ["Add"]},
    ):
        monitor.say(hooked.pid, command)
    monitor.wait_for(lambda event: event["type"] == "census" and "tensors" in event)
    expected, told = outcome(bare, "\n"), outcome(hooked, "\n")
    assert told == expected and told.code == 0 and told.out.endswith("[[], True]")
    assert monitor.wait_for(lambda event: event["type"] == "hook_end")["reason"] == "exit"
    assert len(monitor.of("out_of_memory")) == 1 and len(monitor.of("requested")) == 2


@pytest.fixture
def stub(tmp_path: Path) -> str:
    return working_tensorflow(tmp_path)


needs_ctypes_of_its_own = pytest.mark.skipif(
    VERSION >= (3, 14), reason="from Python 3.14 on, the agent imports ctypes, which lays out its structures"
)

NAMES: tuple[str, ...] = (
    "signal",
    "json",
    "re",
    "typing",
    "ctypes",
    "fcntl",
    "binascii",
    "stat",
    "socket",
    "linecache",
    "functools",
)
NAMES += ("collections", "weakref", "operator", "struct", "types", "atexit", "importlib")


@needs_ctypes_of_its_own
def test_a_scripts_own_modules_are_imported_when_it_does_so(
    monitor: Monitor, script: Script, tmp_path: Path, stub: str
) -> None:
    """The script's modules have the names of the standard library's. Each prints a line when it is imported."""
    folder = tmp_path / "own"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"print('own {name}')\n")
    source = f"""
import sys
sys.path.insert(0, {str(folder)!r})
for name in {NAMES!r}:
    sys.modules.pop(name, None)
import tensorflow
print(sorted(sys.modules))
import json
"""
    bare, hooked = both(monitor, script(source), PYTHONPATH=stub)
    assert bare == hooked and bare.code == 0 and "own signal" in bare.out
    assert monitor.wait_for(lambda event: event["type"] == "hook_end")


@needs_ctypes_of_its_own
def test_nor_does_the_path_of_the_start_hide_what_is_kept(monitor: Monitor, tmp_path: Path, stub: str) -> None:
    for name in ("fcntl", "binascii", "_socket", "_json", "mmap"):
        Path(stub, f"{name}.py").write_text(f"print('own {name}')\n")
    bare, hooked = both(monitor, "-c", "import sys, tensorflow; print(sorted(sys.modules))", PYTHONPATH=stub)
    assert bare == hooked
    assert ("own fcntl" in bare.out) is ("fcntl" not in sys.builtin_module_names)  # fcntl is built into Debian's Python
    assert monitor.wait_for(lambda event: event["type"] == "hook_end")


def test_what_is_kept_is_imported_anew_by_the_script(monitor: Monitor) -> None:
    look = """
import sys
print(sorted(sys.modules))
import _ctypes, _json, _socket, atexit, binascii, ctypes, fcntl, gc, json, socket
atexit.register(print, "at the end")
one, other = socket.socketpair()
one.send(json.dumps({"x": [1.5, None]}).encode())
print(json.loads(other.recv(100)), ctypes.CDLL(None).getpid() > 0, type(one).__mro__, gc.get_threshold())
print(binascii.hexlify(b"x"), fcntl.fcntl(0, fcntl.F_GETFD), ctypes.pointer(ctypes.c_int(3)).contents)
"""
    bare, hooked = both(monitor, "-X", "importtime", "-c", look)
    assert bare[:2] == hooked[:2] and "at the end" in bare.out
    # With the hook, one more sitecustomize is imported. It imports the system's own, if there is one. So this name is
    # not compared.
    imported = [[line.split("|")[2].strip() for line in each.err.splitlines()] for each in (bare, hooked)]
    assert [name for name in imported[1] if name != "sitecustomize"] == [
        name for name in imported[0] if name != "sitecustomize"
    ]
