"""tfmemtop's way in: runs at the start of every Python of the watched command.

It must not be noticed. It leaves ``sys.path`` at once, lets the ``sitecustomize`` run that would have
run without it, and otherwise only waits for TensorFlow. It is written in the grammar that Python 2
and 3 share, so that it can stand in the way of no interpreter, and imports only what is there anyway.
"""

import os
import sys

MYPY = False
if MYPY:
    from types import CodeType, FrameType, ModuleType  # noqa: F401

_AGENT = "_tfmemtop_agent"
_FOLDER = os.path.dirname(__file__)


def _step_aside():  # type: () -> None
    """Let the interpreter find the next ``sitecustomize``; what that raises passes to ``site`` as ever."""
    sys.path[:] = [entry for entry in sys.path if entry != _FOLDER]
    sys.path_importer_cache.pop(_FOLDER, None)
    # The import system hands out what it finds in sys.modules after this module has run: the other one.
    own = sys.modules.pop(__name__)
    __import__(own.__name__)  # `own` lives on: Python 2 empties a module that nobody holds


class _Arrival:
    """A finder that finds the agent only, and starts it once ``tensorflow`` is being imported.

    It waits for the submodule: a mere search for ``tensorflow`` (``importlib.util.find_spec``), which
    many libraries make, is no import.
    """

    def __init__(self, *kept):  # type: (object) -> None
        self._kept = kept

    def find_spec(self, name, path=None, target=None):  # type: (str, object, object) -> object
        if name == "tensorflow.python":
            try:
                arrive = _load_agent().arrive  # type: ignore[attr-defined]
                arrival = arrive(_from_signal_handler, *self._kept)
                self.find_spec = arrival.find_spec  # type: ignore[method-assign]
                if self in sys.meta_path:  # type: ignore[comparison-overlap]  # else it was wrapped
                    # In place, never removed: a search that walks the list would skip a finder.
                    sys.meta_path[sys.meta_path.index(self)] = arrival  # type: ignore[arg-type]
            except Exception as error:
                self.find_spec = _find_nothing  # type: ignore[method-assign]
                if _from_signal_handler(error):
                    raise
                _report(error, *self._kept)  # type: ignore[arg-type]
        elif name.startswith(_AGENT + "."):
            return _spec(name)
        return None


def _find_nothing(name, path=None, target=None):  # type: (str, object, object) -> object
    return None


def _from_signal_handler(error):  # type: (Exception) -> bool
    """Whether *error*, caught in our code, is the script's: come up through a Python signal handler.

    All else that can arise there is ours to keep, whoever raised it: the script's audit hooks, say.
    """
    handlers = set()  # type: set[int]
    for number in range(1, _signal.NSIG):
        handler = _signal.getsignal(number)
        for call in (handler, getattr(handler, "__func__", None), type(handler).__dict__.get("__call__")):
            handlers.add(id(getattr(call, "__code__", call)))
    trace = error.__traceback__
    while trace is not None:
        # A handler that is none any more, or was wrapped in something: its arguments tell.
        if id(trace.tb_frame.f_code) in handlers or _called_as_handler(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _called_as_handler(frame):  # type: (FrameType) -> bool
    """Whether two arguments that follow one another are a signal's number and a frame."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    values = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & 4:  # a parameter like *args
        values.extend(frame.f_locals.get(code.co_varnames[count]) or ())
    places = [place for place, value in enumerate(values[:-1]) if type(value) is int]
    return any(type(values[place + 1]) is type(frame) for place in places)


def _load_agent():  # type: () -> object
    """The agent package, loaded by path and importable by no name."""
    from importlib.util import module_from_spec

    spec = _spec(_AGENT)
    module = sys.modules[_AGENT] = module_from_spec(spec)  # type: ignore[arg-type]
    try:
        spec.loader.exec_module(module)  # type: ignore[attr-defined]
    finally:
        for loaded in list(sys.modules):  # in one go: other threads may be importing
            if loaded.split(".")[0] == _AGENT:
                del sys.modules[loaded]
    return module


def _spec(name):  # type: (str) -> object
    from importlib.machinery import ModuleSpec

    return ModuleSpec(name, _Loader(), is_package=name == _AGENT)  # type: ignore[arg-type]


class _Loader:
    """Loads the agent's modules as code that lies in no file, for the sake of who looks at files.

    Coverage would count ours with the script's, and may end with another exit code for it.
    """

    def create_module(self, spec):  # type: (object) -> None
        return None

    def exec_module(self, module):  # type: (ModuleType) -> None
        from importlib.machinery import SourceFileLoader

        base = module.__name__.partition(".")[2] or "__init__"
        path = os.path.join(os.path.dirname(_FOLDER), "agent", base + ".py")
        code = SourceFileLoader(module.__name__, path).get_code(module.__name__)
        exec(_without_file(code), module.__dict__)  # type: ignore[arg-type]


def _without_file(code):  # type: (CodeType) -> CodeType
    constants = tuple(_without_file(each) if isinstance(each, type(code)) else each for each in code.co_consts)
    return code.replace(co_filename="<tfmemtop %s>" % os.path.basename(code.co_filename), co_consts=constants)


def _report(error, monitor, *kept):  # type: (Exception, str, object) -> None
    """Tell the *monitor*, never the script, that the agent could not be loaded."""
    try:
        import json
        import socket

        text = "the agent could not be loaded: %s: %s" % (type(error).__name__, error)
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            link.setblocking(False)
            link.connect(monitor)
            link.send(json.dumps({"type": "hook_error", "text": text}).encode())
        finally:
            link.close()
    except Exception as again:
        if _from_signal_handler(again):
            raise
        # Else the monitor has gone too, or the script forbids the way to it: nobody is left to be told.


if sys.version_info >= (3, 9) and os.environ.get("TFMEMTOP_SOCKET"):
    import _signal  # type: ignore[import-not-found]
    import _thread

    for _each in list(globals().values()) + list(vars(_Arrival).values()) + list(vars(_Loader).values()):
        if isinstance(_each, type(_spec)):
            _each.__code__ = _without_file(_each.__code__)
    del __file__
    # Kept from before the script, which may clear its environment and replace what makes threads.
    _threads = (_thread.start_new_thread, _thread.allocate_lock, _thread.get_ident, _thread.get_ident())
    sys.meta_path.insert(0, _Arrival(os.environ["TFMEMTOP_SOCKET"], *_threads))  # type: ignore[arg-type]
_step_aside()
