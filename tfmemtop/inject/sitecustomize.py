"""The hook: every Python of the watched command runs it at its start.

The script must not notice it. It leaves ``sys.path`` at once and runs the ``sitecustomize`` that would have
run without it. After that it only waits for TensorFlow, JAX, PyTorch, CuPy or RMM. It is written in the grammar that
Python 2 and 3 share, so that every interpreter can read it.

It keeps the functions of Python's C modules as they are before the script begins, and the agent imports those.
So neither hook nor agent is affected if the script replaces such a function, or has a module of the same name.
"""

import os
import sys

MYPY = False
if MYPY:
    from types import CodeType, FrameType, ModuleType  # noqa: F401
    from typing import Any  # noqa: F401

_HOOKED = sys.version_info >= (3, 9) and bool(os.environ.get("TFMEMTOP_SOCKET"))
# A tfmemtop that is itself watched has put another hook before this one.
_HOOKED = _HOOKED and not any(type(finder).__module__ == __name__ for finder in sys.meta_path)

_AGENT = "_tfmemtop_agent"
_FOLDER = os.path.dirname(__file__)
_AGENTS_FOLDER = os.path.join(os.path.dirname(_FOLDER), "agent")

_KEPT = ["_collections", "_json", "_operator", "_signal", "_socket", "_stat", "_struct", "_thread", "_weakref"]
_KEPT += ["binascii", "errno", "fcntl", "gc", "itertools", "os", "sys", "time"]
if sys.version_info >= (3, 10):
    _KEPT.append("atexit")  # on Python 3.9, another copy makes it drop the functions that were registered before
if sys.version_info < (3, 14):
    _KEPT.append("_ctypes")  # from 3.14 on the script's ctypes lays structures out, and works with no other copy
_LAYOUT = "ctypes._layout"  # from 3.14 on each structure imports this module, even if the script does not
_STAND_INS = ("ctypes", "json", "typing")
_AWAITED = frozenset(("tensorflow.python", "jax._src", "torch._C", "cupy._core", "rmm.mr"))
"""A submodule of each framework: many libraries search for ``tensorflow`` (``importlib.util.find_spec``) without
importing it."""


def _lasting(content):  # type: (dict[str, Any]) -> dict[str, Any]
    """Return the part of a module's *content* that holds no object of the script's, such as ``sys.stdout`` does.

    The hook lives on when Python ends: an object that it held would not be deleted, and a stream would not be flushed.
    Python itself empties ``sys.modules``.
    """
    kinds, names = (type(len), type, int, str, tuple), ("__import__", "environ", "modules")
    return {name: value for name, value in content.items() if issubclass(type(value), kinds) or name in names}


if _HOOKED:
    __builtins__ = _lasting(__builtins__)  # type: ignore  # the functions below call these


def _step_aside():  # type: () -> None
    """Let the interpreter find the next ``sitecustomize``. Its exceptions pass to ``site``, as without the hook."""
    place = sys.path.index(_FOLDER) if _FOLDER in sys.path else 0
    before, after = sys.path[:place], [entry for entry in sys.path[place:] if entry != _FOLDER]
    working = _working_folder() if _stands_for_an_empty_part() else ""
    if working and working not in before:
        after = [working] + [entry for entry in after if entry != working]
    sys.path[:] = before + after
    for entry in [entry for entry in sys.path_importer_cache if os.path.normpath(entry) == _FOLDER]:
        del sys.path_importer_cache[entry]
    # After this module has run, the import system returns the module that is in sys.modules: the other one.
    own = sys.modules.pop(__name__)
    __import__(own.__name__)  # `own` keeps this module alive: Python 2 empties a module that is not held


def _stands_for_an_empty_part():  # type: () -> bool
    """Return whether a script has lengthened a ``PYTHONPATH`` that had only the hook's folder.

    Without the hook, an empty part would be there, which means the working folder. See ``ALONE`` in
    ``engine/process/launch.py``.
    """
    parts = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    hooks = os.path.basename(_FOLDER)
    return os.path.join(_FOLDER, ".") in parts and any(
        os.path.basename(os.path.normpath(one)) != hooks for one in parts
    )


def _working_folder():  # type: () -> str
    try:
        return os.getcwd()
    except OSError:
        return ""


def _keep():  # type: () -> dict[str, ModuleType]
    """Return what is kept of the C modules that the agent needs. Those that were not imported do not stay imported."""
    import _frozen_importlib
    import _frozen_importlib_external
    import _imp

    suffixes = _frozen_importlib_external.ExtensionFileLoader, _imp.extension_suffixes()
    folders = [entry for entry in sys.path if os.path.basename(entry) == "lib-dynload"]
    finders = [_frozen_importlib.BuiltinImporter]  # type: list[Any]
    finders += [_frozen_importlib_external.FileFinder(folder, suffixes) for folder in folders]
    kept, before = {}, set(sys.modules)
    for name in _KEPT:
        module = sys.modules.get(name)
        if module is None:
            specs = (finder.find_spec(name) for finder in finders)
            spec = next((spec for spec in specs if spec is not None), None)
            if spec is None:
                continue  # the agent will import it in the usual way
            try:
                module = _frozen_importlib.module_from_spec(spec)
                spec.loader.exec_module(module)
            except Exception:
                continue  # the agent's import of it will fail in the same way, and be reported
        # Whatever else the agent asks for, such as sys.meta_path, it reads where it is.
        kept[name] = _module(name, dict(_lasting(vars(module)), __getattr__=module.__getattribute__))
    for name in set(sys.modules) - before:
        del sys.modules[name]
    return kept


def _module(name, content):  # type: (str, dict[str, object]) -> ModuleType
    made = type(sys)(name)
    made.__dict__.update(content)
    return made


class _Arrival:
    """A finder that finds nothing, and starts the agent once a framework is being imported."""

    def __init__(self, engine, main_thread, kept):  # type: (str, int, dict[str, ModuleType]) -> None
        self._engine = engine
        self._main_thread = main_thread
        self._kept = kept

    def find_spec(self, name, path=None, target=None):  # type: (str, object, object) -> object
        if name in _AWAITED:
            try:
                laid_out = _LAYOUT in sys.modules
                agent = _Agent(self._kept).load("")
                if not laid_out and _LAYOUT in sys.modules:
                    del sys.modules[_LAYOUT]
                arrival = agent.arrive(_from_signal_handler, self._engine, self._main_thread)
                self.find_spec = arrival.find_spec  # type: ignore[method-assign]
                if self in sys.meta_path:  # type: ignore[comparison-overlap]  # else it was wrapped
                    # Replaced, never removed: a search that is going through the list would skip a finder.
                    sys.meta_path[sys.meta_path.index(self)] = arrival  # type: ignore[arg-type]
            except Exception as error:
                self.find_spec = lambda *_, **__: None  # type: ignore[method-assign]
                if _from_signal_handler(error):
                    raise
                _tell(self._engine, self._kept, error)  # never the script
        return None


def _from_signal_handler(error):  # type: (Exception) -> bool
    """Return whether *error*, caught in the hook or the agent, was raised by a Python signal handler of the script.

    Every other exception is kept from the script, for example also one that an audit hook of the script raised.
    """
    handlers = set()  # type: set[int]
    for number in range(1, _NSIG):
        handler = _getsignal(number)
        for call in (handler, getattr(handler, "__func__", None), type(handler).__dict__.get("__call__")):
            handlers.add(id(getattr(call, "__code__", call)))
    trace = error.__traceback__
    while trace is not None:
        # A handler that is no longer set, or was wrapped in something, is recognised by its arguments.
        if id(trace.tb_frame.f_code) in handlers or _called_as_handler(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _called_as_handler(frame):  # type: (FrameType) -> bool
    """Return whether two arguments that follow one another are a signal's number and a frame."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    values = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & 4:  # a parameter like *args
        values.extend(frame.f_locals.get(code.co_varnames[count]) or ())
    places = [place for place, value in enumerate(values[:-1]) if type(value) is int]
    return any(type(values[place + 1]) is type(frame) for place in places)


class _Agent:
    """Loads the agent's modules, which only the agent itself can import, and runs their import statements.

    A relative import finds a module of the agent. Any other finds a stand-in of the agent's (``agent/stdlib``), or
    else a module that was *kept* from before the script, or else the module that the script would find.
    The code of the agent's modules belongs to no file. Otherwise coverage would count it with the script's, and might
    end with another exit code.
    """

    def __init__(self, kept):  # type: (dict[str, ModuleType]) -> None
        self._modules = dict(kept)
        self._builtins = dict(__builtins__, __import__=self._import)  # type: ignore

    def _import(self, name, globals=None, locals=None, fromlist=None, level=0):  # type: (str, Any, Any, Any, int) -> object
        if level and name:
            return self.load(name)
        if level:
            for each in fromlist or ():
                self.load(each)
            return self.load("")
        if name in _STAND_INS:
            return self.load("stdlib." + name)
        return self._modules.get(name) or __import__(name, globals, locals, fromlist or (), level)

    def load(self, name):  # type: (str) -> ModuleType
        """Return the agent's module *name*, loaded once; its package, if *name* is empty."""
        full = _AGENT + ("." + name if name else "")
        module = self._modules.get(full)
        if module is None:
            path = "%s/%s.py" % (_AGENTS_FOLDER, name.replace(".", "/") or "__init__")
            module = self._modules[full] = _module(full, {"__builtins__": self._builtins})
            code = _SourceFileLoader(full, path).get_code(full)
            exec(_without_file(code), module.__dict__)  # type: ignore[arg-type]
            if name:  # for ``from . import name``
                setattr(self._modules[_AGENT], name, module)
        return module


def _without_file(code):  # type: (CodeType) -> CodeType
    constants = tuple(_without_file(each) if isinstance(each, type(code)) else each for each in code.co_consts)
    return code.replace(co_filename="<tfmemtop %s>" % code.co_filename.rpartition("/")[2], co_consts=constants)


def _tell(engine, kept, error):  # type: (str, dict[str, Any], Exception) -> None
    """Tell the engine that the agent could not be loaded, if the engine is there."""
    try:
        text = kept["_json"].encode_basestring_ascii("%s: %s" % (type(error).__name__, error))
        _socket = kept["_socket"]
        link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        try:
            link.setblocking(False)
            link.connect(engine)
            link.send(('{"type": "hook_error", "doing": "load", "text": %s}' % text).encode())
        finally:
            link.close()
    except Exception as again:
        if _from_signal_handler(again):
            raise
        # Else the engine has gone, or the script forbids the connection: nothing can be reported.


if _HOOKED:
    from _frozen_importlib_external import SourceFileLoader as _SourceFileLoader

    for _each in list(globals().values()) + list(vars(_Arrival).values()) + list(vars(_Agent).values()):
        if isinstance(_each, type(_keep)):
            _each.__code__ = _without_file(_each.__code__)
    del __file__
    _kept = _keep()  # type: dict[str, Any]
    _getsignal, _NSIG = _kept["_signal"].getsignal, _kept["_signal"].NSIG
    sys.meta_path.insert(0, _Arrival(os.environ["TFMEMTOP_SOCKET"], _kept["_thread"].get_ident(), _kept))  # type: ignore[arg-type]
_step_aside()
