"""How findings name things: lines of the script, devices, calls, settings, tensors, operations."""

import re
from collections.abc import Hashable, Iterable, Iterator
from pathlib import PurePath
from typing import TypeVar

import msgspec

from tfmemtop import events
from tfmemtop.events import Call, Changed, LogicalDevice, Requested, Setting, Settled
from tfmemtop.events.machine import is_cpu
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import Layers, named
from tfmemtop.units import MIB, counted, format_bytes


def key_of(kind: type) -> str:
    """Return the name of a class as a key: ``whole_card`` for ``WholeCard``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


class Callsite(msgspec.Struct, frozen=True):
    """A line of the script; ``file`` is empty where it is not known. ``code`` is the text of the line, if known."""

    file: str
    line: int
    code: str = ""


def callsite(call: events.Requested) -> Callsite:
    """Return the line at which the script made the *call*."""
    return Callsite(call.file, call.line)


def devices_made_at(hooked: Hooked) -> Callsite | None:
    """Return the line of the script at which TensorFlow initialised its devices.

    ``None`` where that is not known: in a process that was forked after they were made, and where making them raised
    an error.
    """
    made = hooked.initialised
    if made is None or made.error or not made.file:
        return None
    return Callsite(made.file, made.line, made.code)


K = TypeVar("K", bound=Hashable)

_CELL = re.compile(r"<ipython-input-(?P<number>\d+)-[^>]*>:(?P<line>\d+)")
_UNKNOWN_CELL = re.compile(r".*/ipykernel_\d+/\d+\.py:(?P<line>\d+)")
"""The name that ipykernel gives to a cell's code for its debugger, as if the cell were a file."""

_WITHIN = re.compile(r"(?P<outer>.+)\.(?P<what><lru_cache>|<cycle>|<generator>|__traceback__).*")
_WHAT = {
    "<lru_cache>": "the lru_cache of",
    "<cycle>": "the itertools.cycle",
    "<generator>": "a local variable of the generator",
    "__traceback__": "the traceback of",
}
"""What holds something that a path leads through, as that does not show it."""
PASSED = re.compile(
    r"((filter_traceback\.<locals>\.)?error_handler\.<locals>\.args|raise_from_not_ok_status\.<locals>\.e)\b.*"
)
"""The path in Python of tensors that only TensorFlow's own wrapper around a call holds, or the error that it raises."""
_INSIDE = re.compile(r"(?P<function>.+)\.__closure__\[[\d*]+\]\.cell_contents(?P<name>.+)")
_ARGUMENT = re.compile(r"(?:filter_traceback\.<locals>\.)?error_handler\.<locals>\.kwargs\['(\w+)'\]")
"""An argument of a call of Keras's, which passes through this wrapper: the script knows it by its keyword."""
_PRIVATE = re.compile(r"(?<=\])(\._\w+)+$")
"""Private attributes of the items of a collection, such as ``histories[*]._model``: the script does not write them."""

_SHORT, _FILE = 30, 40  # characters
_A_RANGE = 3  # from so many GPUs on, they are shown as a range

BEFORE = "before the hook was there"
"""The text in place of a line that is not known, since it ran before the hook was there."""


class Place(msgspec.Struct, frozen=True):
    """The device that a finding is about.

    ``gpu`` is the NVML index, ``None`` for the CPU pool and where it is not known. ``device`` is TensorFlow's logical
    device, ``None`` for a whole card. ``shared`` if other logical devices of the process lie on the same card.
    ``pid`` is given where several processes of the run have devices.
    """

    gpu: int | None
    device: str | None = None
    shared: bool = False
    pid: int | None = None

    @property
    def on_cpu(self) -> bool:
        return self.device is not None and is_cpu(self.device)


def place_name(place: Place) -> str:
    """Return the name of a device: ``GPU 0``, ``CPU pool``.

    Where a GPU has several logical devices, ``GPU:1 on GPU 0``; where several processes have devices,
    ``GPU 0, process 200``.
    """
    return _device(place) + (f", process {place.pid}" if place.pid is not None else "")


def _device(place: Place) -> str:
    if place.on_cpu:
        return "CPU pool"
    if place.gpu is None:
        return place.device or "a GPU"
    return f"{place.device} on GPU {place.gpu}" if place.shared else f"GPU {place.gpu}"


def quoted(name: str) -> str:
    """Return a *name* of the script's so that it cannot be read as a word: in backticks."""
    return f"`{name}`"


def capital(text: str) -> str:
    """Return *text* as the beginning of a sentence."""
    return f"{text[0].upper()}{text[1:]}"


def own_path(path: str) -> str:
    """Return a *path* in Python as the script knows it."""
    return _ARGUMENT.sub(r"\1", path)


def holder_name(path: str) -> str:
    """Return the name of the holder with that *path* in Python: ```losses```, ```cache` in wrapper()``."""
    if PASSED.fullmatch(path):
        return "an argument of a call"
    if within := _WITHIN.fullmatch(path):
        return f"{_WHAT[within['what']]} {holder_name(within['outer'])}"
    if path.endswith(".<locals>"):
        return f"a local variable of {path.removesuffix('.<locals>')}()"  # of a coroutine, which does not show its name
    if inside := _INSIDE.fullmatch(path):
        return f"{quoted('…' + inside['name'])} in what {holder_name(inside['function'])} captures"
    function, name = path.rpartition(".<locals>.")[::2]
    return quoted(_PRIVATE.sub("", name)) + (f" in {function}()" if function else "")


def gpus(numbers: Iterable[int]) -> str:
    """Return the GPUs as text: ``GPU 3``, ``GPUs 0 to 7``, ``GPUs 0, 2, 5``."""
    ordered = sorted(numbers)
    if len(ordered) >= _A_RANGE and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"GPUs {ordered[0]} to {ordered[-1]}"
    return f"{'GPUs' if len(ordered) > 1 else 'GPU'} {', '.join(map(str, ordered))}"


def alike_gpus(told: Iterable[tuple[int, K]]) -> list[tuple[K, list[int]]]:
    """Group pairs of a GPU's number and a fact: return each fact once, with the numbers of its GPUs."""
    numbers: dict[K, list[int]] = {}
    for index, thing in told:
        numbers.setdefault(thing, []).append(index)
    return list(numbers.items())


def line_of(site: Callsite) -> str:
    """Return the name of a line: ``train.py:12``; in a notebook's cell ``In [7]:3``."""
    return spot(site.file, site.line) if site.file else "the script"


def spot(file: str, line: int, *, whole: bool = False) -> str:
    """Return the name of a line: ``train.py:12``, or with *whole* its whole path; in a notebook's cell ``In [7]:3``.

    Without a *file*, the line is not known, since it ran before the hook was there.
    """
    if not file:
        return BEFORE
    return named_spot(f"{file}:{line}", whole=whole)


def frames(line: events.OperationLine | None) -> tuple[str, ...]:
    """Return the calls of the script that led to *line*, the innermost last: ``train.py:31 train_step``."""
    split = (frame.partition(" ") for frame in (line.stack if line else ()))
    return tuple(f"{named_spot(place)} {function}" for function, _, place in split)


def named_spot(text: str, *, whole: bool = False) -> str:
    """Return the same as :func:`spot`, for a file and a line that are one text.

    The middle of a long name is left out, so that a verdict has room for what helps.
    """
    if cell := _CELL.fullmatch(text):
        return f"In [{cell['number']}]:{cell['line']}"
    if cell := _UNKNOWN_CELL.fullmatch(text):
        return f"In [?]:{cell['line']}"
    name = text if whole else PurePath(text).name
    return name if whole or len(name) <= _FILE else f"{name[: _FILE // 2]}…{name[-_FILE // 2 + 1 :]}"


def line_with_code(site: Callsite) -> str:
    """Return the name of a line with its code, where that is known: ``train.py:12 (x = tf.ones(3))``."""
    return line_of(site) + (f" ({site.code})" if site.code else "")


def call_text(request: Requested) -> str:
    """Return the call as it is written in a script: ``set_memory_growth(GPU:0, True)``."""
    return f"{request.call.value}({', '.join(_arguments(request))})"


def _arguments(request: Requested) -> Iterator[str]:
    if request.devices is None:
        yield "?"
    else:
        names = ", ".join(request.devices)
        yield f"[{names}]" if request.call is Call.SET_VISIBLE_DEVICES else names
    if request.growth is not None:
        yield str(request.growth)
    elif request.logical is not None:
        fields = [*map(_logical, request.logical)]
        yield f"[{', '.join(fields)}]" if fields != ["()"] * len(fields) else counted(len(fields), "logical device")
    elif request.device_type is not None:
        yield request.device_type


def _logical(device: LogicalDevice) -> str:
    return "()" if device.limit is None else f"(memory_limit={device.limit / MIB:.10g})"


def settled_text(settled: Settled) -> str:
    """Return what tfmemtop settled: ``growth on (the script: off)``, ``limit 4.0 GiB``."""
    asked = _asked(settled)
    return f"{_NAMES[settled.setting]} {_value(settled.given)}" + (f" (the script: {asked})" if asked else "")


_NAMES = {Setting.GROWTH: "growth", Setting.MEMORY_LIMIT: "limit"}


def _asked(settled: Settled) -> str:
    """Return what the script requested; empty if that is what tfmemtop settled."""
    if isinstance(settled.asked, list):
        return " + ".join(map(format_bytes, settled.asked))
    return "" if settled.asked == settled.given else _value(settled.asked)


def _value(value: bool | int) -> str:
    return format_bytes(value) if not isinstance(value, bool) else "on" if value else "off"


_DTYPES = {"half": "float16", "float": "float32", "double": "float64"}
"""The types that have another name in TensorFlow's messages than in Python."""


def tensor_text(shape: list[int], dtype: str | None) -> str:
    """Return shape and type of a tensor: ``[200,3] float32``."""
    return f"[{','.join(map(str, shape))}]" + (f" {_DTYPES.get(dtype, dtype)}" if dtype else "")


KERAS = "Keras"

_OF_KERAS = frozenset(
    {
        "multi_step_on_iterator",
        "one_step_on_iterator",
        "one_step_on_data",
        "one_step_on_data_distributed",
        "train_function",
        "test_function",
        "predict_function",
    }
)


def operation_name(name: str | None) -> str:
    """Return the name of an operation: ``Relu`` for ``functional_1/enc2_1/Relu``, a function's for a graph.

    Keras makes graphs for ``fit``, ``evaluate`` and ``predict``, whose names no user knows: they are ``Keras``.

    TensorFlow calls a graph ``__inference_step_9``. The name is empty for ``None``.
    """
    if name is None:
        return ""
    if name.startswith("__"):
        return function_name(name.strip("_").partition("_")[2].rpartition("_")[0])
    return named(name).base


def function_name(name: str) -> str:
    """Return the name of a ``tf.function``, as of the script's; those of Keras are all :data:`KERAS`."""
    return KERAS if name in _OF_KERAS else f"tf.function {quoted(name)}"


def node_name(node: str) -> str:
    """Return the name of an operation of a graph with its layer, where that is short: ``MatMul of `dense_1```."""
    one = named(node)
    layer = Layers([node], []).of(one)
    return one.base + (f" of {quoted(layer)}" if layer and len(layer) <= _SHORT else "")


def argument_changed(one: Changed) -> str:
    """Return which argument of a function was another one in its newest tracing: ```n` was 3, then 4``."""
    if one.before == one.after:
        return f"{quoted(one.argument)} was another {one.after}"
    return f"{quoted(one.argument)} was {one.before or 'missing'}, then {one.after or 'missing'}"
