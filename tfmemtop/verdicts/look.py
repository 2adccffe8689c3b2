"""What several rules look at: the run's allocators on GPUs, and how to call them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from tfmemtop import events
from tfmemtop.state import State
from tfmemtop.state.lookup import device_of, limit_by, living, of_run
from tfmemtop.state.memo import once_per_revision
from tfmemtop.state.model import DeviceState, Hooked
from tfmemtop.state.trend import Trend

MIB = 2**20
GIB = 2**30

BEHIND_THE_IMPORT = "# right behind the import, before all else:"

GROWTH_CODE = (
    "import tensorflow as tf",
    BEHIND_THE_IMPORT,
    'for gpu in tf.config.list_physical_devices("GPU"):',
    "    tf.config.experimental.set_memory_growth(gpu, True)",
)


@dataclass(frozen=True, slots=True)
class Use:
    """One of TensorFlow's logical devices in one process of the newest run, and the card below it."""

    pid: int
    name: str
    hooked: Hooked
    card: DeviceState | None
    effective: events.Effective | None
    reading: events.Allocator | None
    asked_limit: int | None  # that the script or the user set; ``None`` if TensorFlow chose it
    place: str  # how to call it: "GPU 0", and more where there are several

    @property
    def trend(self) -> Trend | None:
        return self.hooked.trends.get(self.name)

    @property
    def growth(self) -> bool | None:
        return self.effective.growth if self.effective else None

    @property
    def limit(self) -> int | None:
        known = self.reading.limit if self.reading else None
        return known if known is not None else self.effective.limit if self.effective else None

    @property
    def peak(self) -> int | None:
        """Bytes; the highest in use over the whole run, also where the script had TensorFlow forget its own peak."""
        told = self.reading.peak if self.reading else None
        return max(told or 0, self.trend.peak) if self.trend else told

    @property
    def asynchronous(self) -> bool:
        return self.effective is not None and self.effective.allocator == "cuda_malloc_async"


def hooked_of_run(state: State) -> Iterator[tuple[int, Hooked]]:
    """The processes of the newest run that have our hook inside."""
    for pid, process in state.processes.items():
        if process.hooked and of_run(state, pid):
            yield pid, process.hooked


def over(state: State, hooked: Hooked) -> bool:
    """Whether that process has ended, and the run goes on in others: what was true of it is so no more."""
    return hooked.ended and state.run is not None and state.run.going and bool(living(state))


def uses(state: State, kind: str = "GPU") -> list[Use]:
    """The run's logical devices of *kind* (``GPU``, ``CPU``), of a run that is over the last that it had."""
    return [use for use in _uses(state).get(kind, []) if not over(state, use.hooked)]


def had(state: State, kind: str = "GPU") -> bool:
    """Whether any process of the run had a logical device of *kind* at any time."""
    return kind in _uses(state)


@once_per_revision
def _uses(state: State) -> dict[str, list[Use]]:
    """All of them, by kind: most rules begin with these."""
    several = sum(1 for _, hooked in hooked_of_run(state) if hooked.effective or hooked.allocators) > 1
    made: dict[str, list[Use]] = {}
    for pid, hooked in hooked_of_run(state):
        cards = {name: device_of(state, pid, name) for name in sorted({*hooked.effective, *hooked.allocators})}
        for name, card in cards.items():
            kind = name.partition(":")[0]
            shared = sum(1 for other, its in cards.items() if its is card and other.startswith(kind)) > 1
            place = _place(name, card, shared) + (f", process {pid}" if several else "")
            effective, reading = hooked.effective.get(name), hooked.allocators.get(name)
            limit = effective.limit if effective else None
            asked = limit if limit_by(state, hooked, name, limit) in ("tfmemtop", "script") else None
            made.setdefault(kind, []).append(Use(pid, name, hooked, card, effective, reading, asked, place))
    return made


def _place(name: str, card: DeviceState | None, several: bool) -> str:
    if name.startswith("CPU"):
        return "CPU pool"
    if card is None:
        return name
    return f"{name} on GPU {card.info.index}" if several else f"GPU {card.info.index}"


def where(call: events.Requested | events.Initialised) -> str:
    """``train.py:12``"""
    return f"{PurePath(call.file).name}:{call.line}" if call.file else "the script"


def maker(hooked: Hooked) -> str | None:
    """What had TensorFlow make its devices, ``train.py:12 (x = tf.ones(3))``; ``None`` where that is not known.

    A process that was forked with its devices made does not say, and older recordings do not.
    """
    made = hooked.initialised
    if made is None or made.error or not made.file:
        return None
    return where(made) + (f" ({made.code})" if made.code else "")


def output(state: State) -> str:
    """What the newest run has written to its terminal, the newest part of it."""
    number = state.run.run if state.run else None
    return "".join(chunk.text for chunk in state.output if chunk.run == number)


def said(state: State, *phrases: str) -> str | None:
    """The first of *phrases* that the newest run has written to its terminal."""
    text = output(state)
    return next((phrase for phrase in phrases if phrase in text), None)


def variable(state: State, pid: int, name: str) -> str | None:
    """The variable *name* of process *pid*; ``None`` if it is not set, or its environment not known.

    As it was when TensorFlow made its devices, as soon as that is known.
    """
    process = state.processes.get(pid)
    if process and process.hooked and process.hooked.initialised:
        return process.hooked.initialised.variables.get(name)
    if state.run and name in state.run.settings.environment:
        return state.run.settings.environment[name]
    environment = state.environments.get(pid)
    return environment.variables.get(name) if environment else None


def count(number: int, one: str, many: str = "") -> str:
    """``1 reading``, ``2 readings``."""
    return f"{number} {one if number == 1 else many or one + 's'}"
