"""The text of settings, in short words. Pure."""

from collections.abc import Callable, Sequence
from typing import Any

from tfmemtop.limits import typed_gpus
from tfmemtop.settings import Settings, masked
from tfmemtop.state.figures import EffectiveSettings
from tfmemtop.units import MIB, format_bytes

SCRIPTS_OWN = "the script's own settings"
"""The text for a run of which the user chose no setting."""

XLA_REPORT = "XLA's report"


def _gpus(indices: Sequence[int]) -> str:
    return "GPUs " + ",".join(map(str, indices)) if indices else "no GPU"


_WORDS: dict[str, tuple[Callable[[Any], str], str]] = {
    "growth": ("growth {}".format, "growth as the script says"),
    "memory_limit": (lambda size: f"limit {format_bytes(size)}", "limit as the script says"),
    "allocator": (str, "allocator as the script says"),
    "gpus": (_gpus, "all GPUs"),
    "cpu_pool": (lambda size: f"CPU pool {format_bytes(size)}", "CPU pool as the script says"),
    "xla_report": (lambda _: XLA_REPORT, f"no {XLA_REPORT}"),
}
"""By setting: what a value is called, and what it is called that the user no longer chooses it."""


def _is_chosen(value: object) -> bool:
    return value is not None and value is not False


def chosen(settings: Settings) -> list[str]:
    """Return what the user chose, in a fixed order: ``["growth on", "limit 4.0 GiB"]``; empty if nothing."""
    words = [say(value) for name, (say, _) in _WORDS.items() if _is_chosen(value := getattr(settings, name))]
    return words + [f"{name}={masked(name, value)}" for name, value in sorted(settings.environment.items())]


def kept_options(settings: Settings, without: Sequence[str]) -> list[str]:
    """Return the options that set *settings* for another run, but for those that are in *without*."""
    values = {
        "--growth": settings.growth,
        "--memory-limit": settings.memory_limit and f"{settings.memory_limit // MIB}M",
        "--allocator": settings.allocator,
        "--gpus": None if settings.gpus is None else typed_gpus(settings.gpus),
        "--cpu-pool": settings.cpu_pool and f"{settings.cpu_pool // MIB}M",
    }
    return [word for name, value in values.items() if value and name not in without for word in (name, value)]


def in_effect(effect: EffectiveSettings, *, usual: bool = True) -> list[str]:
    """Return what TensorFlow does, and what else the user chose.

    Before TensorFlow has made its devices, return only what the user chose. Without *usual*, the allocator is named
    only where it is not TensorFlow's usual one.
    """
    if not effect.settled:
        return chosen(effect.chosen)
    words = []
    if effect.growths:
        on = "on" if True in effect.growths else "off"
        words.append("growth differs" if len(effect.growths) > 1 else f"growth {on}")
    if effect.limits:
        words.append("limit " + " + ".join(map(format_bytes, effect.limits)))
    words += [name for name in effect.allocators if usual or name != "bfc"]
    return words + chosen(effect.chosen_beside)


def changes(argv: Sequence[str], new: Settings, argv_before: Sequence[str], old: Settings) -> list[str]:
    """Return how a run of *argv* with settings *new* differs from one of *argv_before* with *old*; empty if nowhere."""
    words = []
    for name, (say, otherwise) in _WORDS.items():
        value = getattr(new, name)
        # Where there is a limit, it sets the CPU's pool.
        if value != getattr(old, name) and not (name == "cpu_pool" and not value and new.memory_limit):
            words.append(say(value) if _is_chosen(value) else otherwise)
    words += ["other environment"] * (new.environment != old.environment)
    return words + ["other arguments"] * (list(argv) != list(argv_before))
