"""The text of settings, in short words. Pure."""

from collections.abc import Sequence

from tfmemtop.settings import Settings, masked
from tfmemtop.state.figures import EffectiveSettings
from tfmemtop.units import MIB, format_bytes

SCRIPTS_OWN = "the script's own settings"
"""The text for a run of which the user chose no setting."""

XLA_REPORT = "XLA's report"


def chosen(settings: Settings) -> list[str]:
    """Return what the user chose, in a fixed order: ``["growth on", "limit 4.0 GiB"]``; empty if nothing."""
    words = []
    if settings.growth:
        words.append(f"growth {settings.growth}")
    if settings.memory_limit is not None:
        words.append(f"limit {format_bytes(settings.memory_limit)}")
    if settings.allocator:
        words.append(settings.allocator)
    if settings.gpus is not None:
        words.append(_gpus(settings.gpus))
    if settings.cpu_pool is not None:
        words.append(f"CPU pool {format_bytes(settings.cpu_pool)}")
    if settings.xla_report:
        words.append(XLA_REPORT)
    return words + [f"{name}={masked(name, value)}" for name, value in sorted(settings.environment.items())]


def kept_options(settings: Settings, without: Sequence[str]) -> list[str]:
    """Return the options that set *settings* for another run, but for those that are in *without*."""
    values = {
        "--growth": settings.growth,
        "--memory-limit": settings.memory_limit and f"{settings.memory_limit // MIB}M",
        "--allocator": settings.allocator,
        "--gpus": settings.gpus and ",".join(map(str, settings.gpus)),
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
    if new.growth != old.growth:
        words.append(f"growth {new.growth or 'as the script says'}")
    if new.memory_limit != old.memory_limit:
        words.append(f"limit {format_bytes(new.memory_limit)}" if new.memory_limit else "limit as the script says")
    if new.cpu_pool != old.cpu_pool and (new.cpu_pool or not new.memory_limit):
        words.append(f"CPU pool {format_bytes(new.cpu_pool)}" if new.cpu_pool else "CPU pool as the script says")
    if new.allocator != old.allocator:
        words.append(new.allocator or "allocator as the script says")
    if new.gpus != old.gpus:
        words.append("all GPUs" if new.gpus is None else _gpus(new.gpus))
    if new.xla_report != old.xla_report:
        words.append(XLA_REPORT if new.xla_report else f"no {XLA_REPORT}")
    if new.environment != old.environment:
        words.append("other environment")
    if list(argv) != list(argv_before):
        words.append("other arguments")
    return words


def _gpus(indices: Sequence[int]) -> str:
    return "GPUs " + ",".join(map(str, indices)) if indices else "no GPU"
