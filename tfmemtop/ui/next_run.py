"""The next run's settings and command, as the keys change them. Pure."""

import re
import shlex
from dataclasses import dataclass, replace

import msgspec

from tfmemtop.settings import AllocatorName, Growth, Settings
from tfmemtop.state import State
from tfmemtop.state.anatomy import anatomies
from tfmemtop.state.views import limited_memory, panels
from tfmemtop.units import format_bytes, parse_size

_GROWTHS: tuple[Growth | None, ...] = (None, "on", "off")
_ALLOCATORS: tuple[AllocatorName | None, ...] = (None, "bfc", "cuda_malloc_async")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


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

    def with_limit(self, text: str, state: State) -> "NextRun":
        """The limit that *text* means; empty leaves it to the script.

        Raises:
            ValueError: no size, or more than there is; one sentence fit for the user.
        """
        if not text.strip():
            return self._set(memory_limit=None, cpu_pool=None)
        whole = whole_memory(state, self.settings)
        limit = parse_size(text, whole)
        if whole is not None and limit > whole:
            raise ValueError(f"{format_bytes(limit)} is more than there is: {format_bytes(whole)}")
        # A pool chosen on the command line would otherwise outlive the limit typed later.
        return self._set(memory_limit=limit, cpu_pool=None if not state.devices else self.settings.cpu_pool)

    def with_gpus(self, text: str, state: State) -> "NextRun":
        """The GPUs named in *text* (``0,2``), ``none``, or, empty, those the script chooses.

        Raises:
            ValueError: no list of GPUs, or one that is not there; one sentence fit for the user.
        """
        words = text.replace(",", " ").split()
        if not words:
            return self._set(gpus=None)
        if words == ["none"]:
            return self._set(gpus=())
        if not all(word.isdecimal() for word in words):
            raise ValueError(f"{text!r} is no list of GPUs; give one such as 0,2, or none")
        chosen = tuple(dict.fromkeys(int(word) for word in words))
        missing = [index for index in chosen if index not in state.devices]
        if missing:
            there = ", ".join(map(str, state.devices)) or "none"
            raise ValueError(f"there is no GPU {missing[0]}; there is {there}")
        return self._set(gpus=chosen)

    def with_command_line(self, text: str) -> "NextRun":
        """The command line *text*, variables set before the command as a shell takes them.

        Raises:
            ValueError: quotes that do not close, or no command; one sentence fit for the user.
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
        """What :meth:`with_command_line` reads back."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.settings.environment.items()]
        return " ".join([*variables, shlex.join(self.argv)])

    def changes(self, argv: list[str], settings: Settings) -> tuple[str, ...]:
        """What differs from a run of *argv* with *settings*, as words; empty if nothing does."""
        words = []
        new, old = self.settings, settings
        if new.growth != old.growth:
            words.append(f"growth {new.growth or 'as the script says'}")
        if new.memory_limit != old.memory_limit:
            words.append(f"limit {format_bytes(new.memory_limit)}" if new.memory_limit else "no limit of ours")
        if new.cpu_pool != old.cpu_pool and new.cpu_pool:
            words.append(f"CPU pool {format_bytes(new.cpu_pool)}")
        if new.allocator != old.allocator:
            words.append(new.allocator or "allocator as the script says")
        if new.gpus != old.gpus:
            words.append(
                "all GPUs" if new.gpus is None else "GPUs " + ",".join(map(str, new.gpus)) if new.gpus else "no GPU"
            )
        if new.environment != old.environment:
            words.append("other environment")
        if list(self.argv) != argv:
            words.append("other arguments")
        return tuple(words)

    def _set(self, **values: object) -> "NextRun":
        return replace(self, settings=msgspec.structs.replace(self.settings, **values))


def whole_memory(state: State, settings: Settings) -> int | None:
    """Bytes that a limit is a share of: the smallest chosen GPU's, without GPUs the host's."""
    chosen = settings.gpus if settings.gpus is not None else tuple(state.devices)
    totals = [state.devices[i].info.total for i in chosen if i in state.devices]
    known = [total for total in totals if total is not None]
    if known:
        return min(known)
    return state.session.host_memory if state.session and not state.devices else None


def limit_suggestions(state: State) -> list[tuple[str, str]]:
    """Limits worth picking, as text to type and a sentence: what ran out or the peak, and a tenth; and shares."""
    suggestions = []
    if lacking := lacked(state):
        why = f"in use and asked for when it ran out, {format_bytes(lacking)}, and a tenth more"
        suggestions.append((_a_tenth_more(lacking), why))
    else:
        peaks = [panel.peak for panel in panels(state) if panel.peak]
        peak = max(peaks, default=None) or (state.run.peak_in_use if state.run else None)
        if peak:
            suggestions.append((_a_tenth_more(peak), f"the peak in use so far, {format_bytes(peak)}, and a tenth more"))
    suggestions += [("50%", f"half of {_the_memory(state)}"), ("25%", "a quarter of it"), ("", "as the script says")]
    return suggestions


def _the_memory(state: State) -> str:
    return (not state.devices and limited_memory(state)) or "the memory there is"


def lacked(state: State) -> int | None:
    """Bytes that a pool would have had to hold for the newest run's failed allocation.

    ``None`` if none failed, or no limit would help.
    """
    known = [
        (a.in_use + a.asked, a.card_total) for a in anatomies(state) if a.in_use is not None and a.asked is not None
    ]
    return max((size for size, whole in known if whole is None or size * 11 // 10 <= whole), default=None)


def _a_tenth_more(size: int) -> str:
    return f"{-(-size * 11 // 10 // 2**20)}M"
