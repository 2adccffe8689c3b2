"""The next run's settings and command, as the keys change them. Pure."""

import re
import shlex
from dataclasses import dataclass, replace

import msgspec

from tfmemtop.events import SettingReplayed
from tfmemtop.limits import Machine, parse_limit
from tfmemtop.session.not_chosen import NoChoice, NotChosen
from tfmemtop.settings import AllocatorName, Growth, Settings
from tfmemtop.state import State

_GROWTHS: tuple[Growth | None, ...] = (None, "on", "off")
_ALLOCATORS: tuple[AllocatorName | None, ...] = (None, "bfc", "cuda_malloc_async")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


COLLECTING = "TF_ENABLE_GPU_GARBAGE_COLLECTION"
"""The variable by which TensorFlow's allocator for GPUs collects garbage, or does not."""


@dataclass(frozen=True)
class NextRun:
    """What R would start."""

    argv: tuple[str, ...]
    settings: Settings

    def with_growth_cycled(self) -> "NextRun":
        """Growth as the script says, on, off, and round again."""
        now = _GROWTHS.index(self.settings.growth)
        return self._set(growth=_GROWTHS[(now + 1) % len(_GROWTHS)])

    def with_allocator_cycled(self, has_gpu: bool) -> "NextRun":
        """The allocator as the script says, bfc, and on a GPU cuda_malloc_async."""
        choices = _ALLOCATORS if has_gpu else _ALLOCATORS[:2]
        now = choices.index(self.settings.allocator) if self.settings.allocator in choices else 0
        return self._set(allocator=choices[(now + 1) % len(choices)])

    def with_xla_report_toggled(self) -> "NextRun":
        """Whether XLA writes down what lies in its buffers."""
        return self._set(xla_report=not self.settings.xla_report)

    def with_limit(self, text: str, state: State) -> "NextRun":
        """The limit that *text* means; empty leaves it to the script.

        Raises:
            ValueError: as :func:`tfmemtop.limits.parse_limit`, typed: no size, or more than there is.
        """
        if not text.strip():
            return self._set(memory_limit=None, cpu_pool=None)
        limit = parse_limit(text, _machine(state).whole(self.settings))
        # A pool chosen on the command line would otherwise outlive the limit typed later.
        return self._set(memory_limit=limit, cpu_pool=None if not state.devices else self.settings.cpu_pool)

    def with_replayed(self, row: SettingReplayed, state: State) -> "NextRun":
        """The setting that was replayed; its growth and garbage collection are of GPUs only.

        Raises:
            ValueError: as :func:`tfmemtop.limits.parse_limit`, typed: its limit is more than there is.
        """
        chosen = self.with_limit("" if row.limit is None else str(row.limit), state)
        if not state.devices:
            return chosen
        others = {name: value for name, value in self.settings.environment.items() if name != COLLECTING}
        if not row.collects:
            others[COLLECTING] = "false"
        return chosen._set(growth="on" if row.growth else "off", environment=others)

    def with_gpus(self, text: str, state: State) -> "NextRun":
        """The GPUs named in *text* (``0,2``), ``none``, or, empty, those the script chooses.

        Raises:
            NotChosen: no list of GPUs, or one that is not there.
        """
        words = text.replace(",", " ").split()
        if not words:
            return self._set(gpus=None)
        if words == ["none"]:
            return self._set(gpus=())
        if not all(word.isdecimal() for word in words):
            raise NotChosen(NoChoice.NO_LIST, text)
        chosen = tuple(dict.fromkeys(int(word) for word in words))
        missing = [index for index in chosen if index not in state.devices]
        if missing:
            raise NotChosen(NoChoice.NO_GPU, str(missing[0]), state.devices)
        return self._set(gpus=chosen)

    def with_command_line(self, text: str) -> "NextRun":
        """The command line *text*, variables set before the command as a shell takes them.

        Raises:
            NotChosen: quotes that do not close, or no command.
        """
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise NotChosen(NoChoice.UNREADABLE, str(error)) from None
        environment = {}
        while words and _ASSIGNMENT.fullmatch(words[0]):
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        if not words:
            raise NotChosen(NoChoice.NO_COMMAND)
        return replace(
            self, argv=tuple(words), settings=msgspec.structs.replace(self.settings, environment=environment)
        )

    def command_line(self) -> str:
        """What :meth:`with_command_line` reads back."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.settings.environment.items()]
        return " ".join([*variables, shlex.join(self.argv)])

    def _set(self, **values: object) -> "NextRun":
        return replace(self, settings=msgspec.structs.replace(self.settings, **values))


def whole_memory(state: State, settings: Settings) -> int | None:
    """Bytes that a limit is a share of, as :meth:`tfmemtop.limits.Machine.whole`."""
    return _machine(state).whole(settings).size


def _machine(state: State) -> Machine:
    devices = [state.devices.get(index) for index in range(max(state.devices, default=-1) + 1)]
    return Machine(
        uuids=[device.info.uuid if device else "" for device in devices],
        totals=[device.info.total if device else None for device in devices],
        host_memory=state.session.host_memory if state.session else None,
        host_memory_of=state.session.host_memory_of if state.session else "machine",
    )
