"""tfmemtop's way in: runs at the start of every Python of the watched command.

It must not be noticed. It leaves ``sys.path`` at once, lets the ``sitecustomize`` run that would have
run without it, and otherwise only waits for TensorFlow. It is written in the grammar that Python 2
and 3 share, so that it can stand in the way of no interpreter, and imports only what is there anyway.
"""

import os
import sys


def _step_aside():  # type: () -> None
    """Let the interpreter find the next ``sitecustomize``; what that raises passes to ``site`` as ever."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    sys.path_importer_cache.pop(folder, None)
    # The import system hands out what it finds in sys.modules after this module has run: the other one.
    own = sys.modules.pop(__name__)
    __import__(own.__name__)  # `own` lives on: Python 2 empties a module that nobody holds


class _Arrival:
    """A finder that finds nothing, and starts the agent once ``tensorflow`` is being imported.

    It waits for the submodule: a mere search for ``tensorflow`` (``importlib.util.find_spec``), which
    many libraries make, is no import.
    """

    def __init__(self, *threads):  # type: (object) -> None
        self._threads = threads

    def find_spec(self, name, path=None, target=None):  # type: (str, object, object) -> object
        if name == "tensorflow.python":
            try:
                # In place, never removed: a search that walks the list would skip a finder.
                place = sys.meta_path.index(self)  # type: ignore[arg-type]
                sys.meta_path[place] = _load_agent().arrive(*self._threads)  # type: ignore[attr-defined]
            except Exception as error:
                self.find_spec = _find_nothing  # type: ignore[method-assign]
                if not _is_ours(error):
                    raise
                _report(error)
        return None


def _find_nothing(name, path=None, target=None):  # type: (str, object, object) -> object
    return None


def _is_ours(error):  # type: (Exception) -> bool
    """Whether *error* arose in loading the agent, and not in a signal handler of the script meanwhile."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    source = "" if trace is None else trace.tb_frame.f_code.co_filename
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return source.startswith((home + os.sep, "<frozen importlib"))


def _load_agent():  # type: () -> object
    """The agent package, loaded by path and importable by no name."""
    from importlib.util import module_from_spec, spec_from_file_location

    name = "_tfmemtop_agent"
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "agent")
    spec = spec_from_file_location(name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        for loaded in [loaded for loaded in sys.modules if loaded.split(".")[0] == name]:
            del sys.modules[loaded]
    return module


def _report(error):  # type: (Exception) -> None
    """Tell the monitor, never the script, that the agent could not be loaded."""
    import json
    import socket

    text = "the agent could not be loaded: %s: %s" % (type(error).__name__, error)
    try:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            link.setblocking(False)
            link.connect(os.environ["TFMEMTOP_SOCKET"])
            link.send(json.dumps({"type": "hook_error", "text": text}).encode())
        finally:
            link.close()
    except OSError:
        pass  # the monitor has gone too: nobody is left to be told


if sys.version_info >= (3, 9) and os.environ.get("TFMEMTOP_SOCKET"):
    import _thread

    sys.meta_path.insert(0, _Arrival(_thread.start_new_thread, _thread.allocate_lock))  # type: ignore[arg-type]
_step_aside()
