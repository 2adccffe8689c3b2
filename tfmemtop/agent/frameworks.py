"""Reads the frameworks that the script has imported, in the sampler's thread, and sends what they hold."""

import sys
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any, Callable, Optional

from .collector import MUCH, Collector
from .devices import gpu_uuid
from .environment import variable
from .framework_readers import Reader
from .messenger import Messenger

if TYPE_CHECKING:
    from types import ModuleType

_VERSION = 64  # characters
_SHARE = 0.002  # of a core, for each framework


class Frameworks:
    """The frameworks of this process."""

    def __init__(self, messenger: Messenger, collector: Collector) -> None:
        self._messenger = messenger
        self._collector = collector
        self._found: dict[str, Reader] = {}
        self._due: dict[str, float] = {}
        self._took: dict[str, float] = {}  # seconds of a core, the last reading
        self._settings: dict[str, dict[str, str]] = {}  # of those that have been read
        self._uuids: dict[int, Optional[str]] = {}

    def found(self, reader: Reader, module: Any, begin: "Callable[[], object]") -> None:
        """Read a framework from now on, which the script has imported; have *begin* called as it initialises GPUs."""
        self._found[reader.framework] = reader
        self._tell_version(reader)
        if reader.watch is not None:
            reader.watch(module, begin)

    def _tell_version(self, reader: Reader) -> None:
        version = str(getattr(_package(reader), "__version__", ""))[:_VERSION]
        if self._messenger.frameworks.get(reader.framework) != version:
            self._messenger.frameworks[reader.framework] = version
            self._messenger.hello()

    @property
    def any_read(self) -> bool:
        """Whether one of them had initialised GPUs at a reading."""
        return bool(self._settings)

    def begin(self) -> bool:
        """Return whether one may be read from now on."""
        modules = [(reader, sys.modules.get(reader.module)) for reader in list(self._found.values())]
        return any(module is not None and reader.begins(module) for reader, module in modules)

    def read(self, interval: float) -> None:
        """Read those that are due, at most every *interval* seconds."""
        for reader in list(self._found.values()):
            if monotonic() >= self._due.get(reader.framework, 0.0) and self._collector.room(MUCH):
                self._messenger.guarded(f"read:{reader.title}", self._read, reader, interval)

    def _read(self, reader: Reader, interval: float) -> None:
        began = thread_time()
        self._due[reader.framework] = monotonic() + interval  # in case the reading fails
        module = sys.modules.get(reader.module)
        readings = [] if module is None or _is_importing(reader) else reader.read(module)
        if readings and reader.framework not in self._settings:
            told = {name: variable(name) for name in reader.variables}
            self._settings[reader.framework] = {name: value for name, value in told.items() if value is not None}
            self._tell_version(reader)  # at the beginning of its import, a package may not have it yet
        for reading in readings:
            fields = reading._asdict()
            ordinal = fields.pop("ordinal")
            if self._uuids.get(ordinal) is None:
                self._uuids[ordinal] = gpu_uuid(ordinal)
            fields.update(framework=reader.framework, device=f"{reader.title}:{ordinal}", uuid=self._uuids[ordinal])
            self._messenger.offer("framework", settings=self._settings[reader.framework], **fields)
        took = thread_time() - began
        usual = min(took, self._took.get(reader.framework, 0.0))  # a single one, as the first, may take long
        self._took[reader.framework] = took
        self._due[reader.framework] = monotonic() + max(interval, usual / _SHARE)


def _is_importing(reader: Reader) -> bool:
    """Return whether the import of the framework's package goes on: it then lacks some of its functions."""
    return bool(getattr(getattr(_package(reader), "__spec__", None), "_initializing", False))


def _package(reader: Reader) -> "Optional[ModuleType]":
    return sys.modules.get(reader.module.partition(".")[0])
