"""Rows, one for every process and GPU. A row computes a figure only when it is read.

A screen shows about thirty rows of thousands of processes. The others are only counted, and sorted by one figure.
"""

from tfmemtop import events
from tfmemtop.events.machine import is_pinned
from tfmemtop.state.lookup import device_of, once_per_revision, pool_use
from tfmemtop.state.model import ProcessState, State
from tfmemtop.state.program import command_and_program


class ProcessRow:
    """A process on one GPU (or on none); unknown figures are ``None``. Sizes in bytes, shares in percent.

    It reads the present state. It must not be used after the next event.
    """

    __slots__ = ("_share", "_state", "gpu", "pid", "process")

    def __init__(self, state: State, process: ProcessState, gpu: int | None) -> None:
        self.pid = process.seen.pid
        self.gpu = gpu
        self._state = state
        self.process = process
        self._share = state.devices[gpu].by_pid[self.pid] if gpu is not None else None

    @property
    def gpu_memory(self) -> int | None:
        return self._share.used if self._share else None

    @property
    def sm(self) -> int | None:
        return self._share.sm if self._share else None

    @property
    def bandwidth(self) -> int | None:
        return self._share.bandwidth if self._share else None

    @property
    def cpu(self) -> float | None:
        return None if self.process.gone else self.process.reading.cpu

    @property
    def in_use(self) -> int | None:
        return pool_use(readings)[0] if (readings := self._readings()) else None

    @property
    def pool(self) -> int | None:
        return pool_use(readings)[1] if (readings := self._readings()) else None

    @property
    def peak(self) -> int | None:
        return sum(reading.peak or 0 for reading in readings) if (readings := self._readings()) else None

    @property
    def elapsed_s(self) -> float | None:
        """Seconds since the process started."""
        began, session = self.process.seen.started, self._state.session
        return (session.started if session else 0.0) + self._state.now - began if began else None

    @property
    def command(self) -> str:
        return command_and_program(self.process)[0]

    @property
    def program(self) -> str:
        """The part of the command that identifies the process: without folders and without Python."""
        return command_and_program(self.process)[1]

    @property
    def workload(self) -> str | None:
        """The container, pod, job, notebook or unit that the process belongs to, in few characters."""
        belongs_to = self.process.seen.workload
        return belongs_to.short if belongs_to else None

    @property
    def of_run(self) -> bool:
        """Whether the process belongs to the newest run."""
        run = self._state.run
        return run is not None and self.process.seen.run == run.run

    def _readings(self) -> list[events.Allocator]:
        """Return the newest readings of the process's allocators: on a GPU's row those on that GPU, else all."""
        hooked = self.process.hooked
        return [
            reading
            for logical, reading in (hooked.allocators.items() if hooked else ())
            if not is_pinned(logical) and (self.gpu is None or self._lies_here(logical))
        ]

    def _lies_here(self, logical: str) -> bool:
        card = device_of(self._state, self.pid, logical)
        return card is not None and card.info.index == self.gpu


@once_per_revision
def processes(state: State) -> list[ProcessRow]:
    """Return a row for each process and each GPU on which it has memory; a process without a GPU has one row."""
    on_gpu: dict[int, list[int | None]] = {}
    for index, device in state.devices.items():
        for pid in device.by_pid:
            on_gpu.setdefault(pid, []).append(index)
    nowhere: list[int | None] = [None]
    return [
        ProcessRow(state, process, index)
        for pid, process in state.processes.items()
        for index in on_gpu.get(pid, nowhere)
    ]
