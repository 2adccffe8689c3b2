"""The event of a census: which variables, tensors, data sets and arrays of the script are alive."""

import struct
from enum import Enum
from typing import Annotated

import msgspec

from tfmemtop.bounds import Addresses, Few, Name, Number, Positive, Size, Some, Text
from tfmemtop.events.base import DescribedEnum, Event, Newest, Origin


class Variable(msgspec.Struct, frozen=True, array_like=True):
    """A variable that is alive. ``kind`` is ``variables`` (of the model or script), ``optimizer`` or ``metrics``.

    With the kind ``tensors`` it is another eager tensor. Its ``name`` is the path by which Python holds it, or empty.
    ``address`` is that of its buffer as the census was taken, 0 if it is not known.
    """

    name: Text
    kind: Name
    shape: Annotated[list[Size], Few]
    dtype: Name
    device: Name
    bytes: Size
    address: Size = 0


class Alike(msgspec.Struct, frozen=True, array_like=True):
    """A group of live tensors or variables with the same holder, such as one list, or the rows of one list.

    There are ``count`` of them, of ``bytes`` bytes together. ``holder`` is the holder's path in Python
    (``trainer.history``, ``rows[*].loss``). It is empty for those of no such holder: they are grouped by shape.
    ``shape`` is ``None`` if they have different shapes. ``kind`` is that of :class:`Variable`. ``items`` is how many
    items of the outermost list or dict on the path hold them, for models of the innermost: 14 of ``models[*]``; 0 where
    the path has none.
    ``packed`` has the addresses of buffers of tensors, 8 bytes each, the largest tensors first.
    """

    holder: Text
    count: Positive
    shape: Annotated[list[Size], Few] | None
    dtype: Name
    device: Name
    bytes: Size
    kind: Name = "tensors"
    items: Size = 0
    packed: Addresses = b""

    @property
    def addresses(self) -> tuple[int, ...]:
        """The addresses of buffers of the group's tensors."""
        return struct.unpack(f"<{len(self.packed) // 8}Q", self.packed[: len(self.packed) // 8 * 8])


class Gone(msgspec.Struct, frozen=True, array_like=True):
    """Variables on ``device`` that Python no longer holds: ``count`` of them, of ``bytes`` bytes together.

    ``slots`` of these are optimizers'.
    """

    device: Name
    count: Size
    bytes: Size
    slots: Size = 0


class DatasetBuffer(msgspec.Struct, frozen=True, array_like=True):
    """A data set of the script's that keeps elements: its ``kind`` (``shuffle``, ``cache``, ``prefetch``).

    ``elements`` is the most elements that it keeps, ``None`` if that is not known; ``each`` is the bytes of one
    element, ``None`` if its shape is not known. With the kind ``generator``, ``elements`` is how many data sets were
    made of Python generators so far.
    """

    kind: Name
    elements: Size | None
    each: Size | None


class HostArray(msgspec.Struct, frozen=True, array_like=True):
    """A NumPy array, which lies in the host's memory. ``name`` is the path by which Python holds it.

    Or all arrays in one list or dict, such as ``frames[*]``: ``dtype`` is empty, and ``shape`` has their number.
    """

    name: Text
    shape: Annotated[list[Size], Few]
    dtype: Name
    bytes: Size


class CensusMoment(Enum):
    """When a census was taken."""

    USUAL = "usual"  # at its pace, or on request
    WAITING = "waiting"  # while an allocation that failed waited for room
    END = "end"  # as the script ended
    OPENED = "opened"  # as a window of allocations was opened
    CLOSED = "closed"  # as it was closed


class Unseen(DescribedEnum):
    """Why live tensors were not looked for, or which objects were left out."""

    ASYNCHRONOUS = (
        "asynchronous",
        "The script runs operations asynchronously. Asking a tensor for its shape would wait.",
    )
    REMOTE = "remote", "The script uses TensorFlow on other machines. Asking a tensor for its shape could wait."
    NOT_SHOWN = "not_shown", "Python's garbage collector does not show the tensors of this TensorFlow."
    BUSY = "busy", "Some tensors were not looked at: that would have held up the script."
    FROZEN = "frozen", "{frozen} objects that the script put aside with gc.freeze were not looked at."
    AUDITED = (
        "audited",
        "The script has an audit hook, so what generators, coroutines, queues and caches hold was not looked at.",
    )
    LATE = "late", "The search for what keeps tensors and variables was cut short."


class Census(Event, tag="census", frozen=True):
    """The memory of a process's variables: bytes by device and kind, and the 20 largest variables.

    ``others`` are further variables of at least 1 KiB each, and tensors with a path of their own, up to 2 000.

    The census includes live eager tensors if they were looked for. That is done on request, and while an allocation
    that failed waits for room. Then ``tensors`` is the number of tensors found, or ``hidden`` is the reason why none
    could be found. If some were found, ``hidden`` is the reason why some objects were left out, ``frozen`` the number
    of these objects, and ``alike`` has the largest groups of tensors and variables. Such a look also finds ``tapes``,
    the number of gradient tapes that are recording or persistent, and ``tapes_in``, the path by which most are held.

    ``window`` is the number of the window of allocations for which it was taken, 0 if there is none.

    ``buffers`` are the data sets that keep elements, the largest 20. ``arrays`` are large NumPy arrays: those that the
    script holds, or, without a look, its global variables. ``gone`` are all variables that Python no longer holds.
    TensorFlow itself may still hold their memory.
    """

    origin = Origin.HOOK
    keep = Newest(8, "pid", "looked", "of_window", first=True)  # two for each window that is kept

    pid: Number
    kinds: Annotated[dict[Name, Annotated[dict[Name, Size], Few]], Few]
    largest: Annotated[list[Variable], Few]
    others: Annotated[list[Variable], Some] = msgspec.field(default_factory=list)
    cost_us: Size | None = None
    tensors: Size | None = None
    hidden: Unseen | None = None
    frozen: Size | None = None
    alike: Annotated[list[Alike], Few] = msgspec.field(default_factory=list)
    moment: CensusMoment = CensusMoment.USUAL
    window: Number = 0
    gone: Annotated[list[Gone], Few] = msgspec.field(default_factory=list)
    tapes: Size | None = None
    tapes_in: Text = ""
    buffers: Annotated[list[DatasetBuffer], Few] = msgspec.field(default_factory=list)
    arrays: Annotated[list[HostArray], Few] = msgspec.field(default_factory=list)

    @property
    def looked(self) -> bool:
        """Whether live tensors were looked for."""
        return self.tensors is not None or self.hidden is not None

    @property
    def found_by_path(self) -> tuple[int, int]:
        """The bytes that a look has found by a path in Python, and all that it has found."""
        return sum(one.bytes for one in self.alike if one.holder), sum(one.bytes for one in self.alike)

    @property
    def of_window(self) -> bool:
        """Whether it was taken for a window of allocations."""
        return self.window > 0
