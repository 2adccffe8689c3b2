"""The settings and the command of the next run, and how the keys change them. Pure."""

import re
import shlex

import msgspec
from msgspec.structs import replace

from tfmemtop.events import SettingReplayed
from tfmemtop.limits import FreeGpus, HostOwner, Machine, parse_gpus, parse_limit
from tfmemtop.settings import AllocatorName, Growth, Settings
from tfmemtop.state import State
from tfmemtop.state.lookup import process_total, used_frameworks

_GROWTHS: tuple[Growth | None, ...] = (None, "on", "off")
_ALLOCATORS: tuple[AllocatorName | None, ...] = (None, "bfc", "cuda_malloc_async")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


COLLECTING = "TF_ENABLE_GPU_GARBAGE_COLLECTION"
"""The environment variable that turns the garbage collection of TensorFlow's GPU allocator on or off."""


class NextRun(msgspec.Struct, frozen=True, dict=True):
    """What the key R would start: the command and its settings."""

    argv: tuple[str, ...]
    settings: Settings

    def with_growth_cycled(self) -> "NextRun":
        """Return the run with the next setting of growth: as the script sets it, on, off, then again the first."""
        now = _GROWTHS.index(self.settings.growth)
        return self._set(growth=_GROWTHS[(now + 1) % len(_GROWTHS)])

    def with_allocator_cycled(self, has_gpu: bool) -> "NextRun":
        """Return the run with the next allocator: as the script sets it, bfc, and with a GPU cuda_malloc_async."""
        choices = _ALLOCATORS if has_gpu else _ALLOCATORS[:2]
        now = choices.index(self.settings.allocator) if self.settings.allocator in choices else 0
        return self._set(allocator=choices[(now + 1) % len(choices)])

    def with_frameworks(self, state: State) -> "NextRun":
        """Return the run with its settings also for the frameworks beside TensorFlow that the newest run used.

        If it used none, such as one that failed early, those that are set stay.
        """
        used = used_frameworks(state)
        return self._set(frameworks=used) if used else self

    def with_xla_report_toggled(self) -> "NextRun":
        """Return the run with XLA's report on the contents of its buffers turned on or off."""
        return self._set(xla_report=not self.settings.xla_report)

    def with_limit(self, text: str, state: State) -> "NextRun":
        """Return the run with the limit in *text*, such as ``4G`` or ``50%``; if empty, the script sets it.

        Raises:
            ValueError: *text* is not a size, or the size is more than there is or less than TensorFlow accepts. The
                subclasses are those of :func:`tfmemtop.limits.parse_limit`.
        """
        if not text.strip():
            return self._set(memory_limit=None, cpu_pool=None)
        limit = parse_limit(text, _machine(state).whole(self.settings))
        if self.settings.cpu_pool is not None and not state.devices:
            # Both options set the size of the CPU pool. The runs can be compared if they use the same one.
            return self._set(cpu_pool=limit)
        return self._set(memory_limit=limit)

    def with_replayed(self, row: SettingReplayed, state: State) -> "NextRun":
        """Return the run with the setting that *row* was replayed with.

        Growth and garbage collection are set only on a machine with GPUs.

        Raises:
            ValueError: the limit of *row* is more than there is. The subclasses are those of
                :func:`tfmemtop.limits.parse_limit`.
        """
        chosen = self.with_limit("" if row.limit is None else str(row.limit), state)
        if not state.devices:
            return chosen
        others = {name: value for name, value in self.settings.environment.items() if name != COLLECTING}
        if not row.collects:
            others[COLLECTING] = "false"
        return chosen._set(growth="on" if row.growth else "off", environment=others)

    def with_gpus(self, text: str, state: State) -> "NextRun":
        """Return the run with the GPUs in *text*, such as ``0,2`` or ``none``; if empty, the script chooses them.

        ``free:2`` are the two GPUs with the most free memory, see :func:`free_after`.

        Raises:
            ValueError: *text* is not a list of GPUs, or the machine lacks one of them.
        """
        if not text.strip():
            return self._set(gpus=None)
        wanted = parse_gpus(text)
        chosen = wanted.chosen(free_after(state)) if isinstance(wanted, FreeGpus) else wanted
        missing = [index for index in chosen if index not in state.devices]
        if missing:
            there = ", ".join(map(str, state.devices))
            choice = f"choose from {there}" if there else "this machine has none"
            raise ValueError(f"there is no GPU {missing[0]}; {choice}")
        return self._set(gpus=chosen)

    def with_command_line(self, text: str) -> "NextRun":
        """Return the run with the command line *text*. As in a shell, ``NAME=value`` before it sets a variable.

        Raises:
            ValueError: *text* has a quote that is not closed, or contains no command.
        """
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise ValueError(f"the command line cannot be read: {error}") from None
        environment = {}
        while words and _ASSIGNMENT.fullmatch(words[0]):
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        if not words:
            raise ValueError("there is no command")
        return replace(
            self, argv=tuple(words), settings=msgspec.structs.replace(self.settings, environment=environment)
        )

    def command_line(self) -> str:
        """Return the variables and the command as text that :meth:`with_command_line` can parse."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.settings.environment.items()]
        return " ".join([*variables, shlex.join(self.argv)])

    def _set(self, **values: object) -> "NextRun":
        return replace(self, settings=msgspec.structs.replace(self.settings, **values))


def whole_memory(state: State, settings: Settings) -> int | None:
    """Return the bytes of which a limit is a share; ``None`` if unknown. See :meth:`tfmemtop.limits.Machine.whole`."""
    return _machine(state).whole(settings).size


def free_after(state: State) -> dict[int, int]:
    """Return the bytes of each GPU that are free once the newest run has ended, by index, where they are known."""
    return {
        index: device.reading.free + (process_total(state, device) or 0)
        for index, device in state.devices.items()
        if device.reading is not None and device.reading.free is not None
    }


def _machine(state: State) -> Machine:
    devices = [state.devices.get(index) for index in range(max(state.devices, default=-1) + 1)]
    return Machine(
        uuids=[device.info.uuid if device else "" for device in devices],
        totals=[device.info.total if device else None for device in devices],
        host_memory=state.session.host_memory if state.session else None,
        host_memory_of=state.session.host_memory_of if state.session else HostOwner.MACHINE,
    )
