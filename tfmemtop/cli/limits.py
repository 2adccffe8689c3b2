"""Converts the sizes that the user typed as options to bytes on this machine."""

import msgspec

from tfmemtop.cli import Refusal, usage
from tfmemtop.cli.arguments import RunArguments
from tfmemtop.findings.starting import unusable
from tfmemtop.limits import Machine, Whole, parse_limit
from tfmemtop.settings import Settings, carry


def resolve(arguments: RunArguments, machine: Machine) -> Settings:
    """Return the settings with sizes in bytes, checked against *machine*.

    A share such as ``50%`` refers to the smallest GPU that is visible to the script; without a GPU, to the host memory.

    Raises:
        Refusal: a size is not valid, or larger than the memory; a GPU does not exist; or two options set the size of
            the CPU pool.
    """
    settings = arguments.settings
    if not machine.uuids and arguments.memory_limit is not None and arguments.cpu_pool is not None:
        raise Refusal(usage.CPU_POOL_TWICE)
    try:
        carry(settings, machine.uuids)
        return msgspec.structs.replace(
            settings,
            memory_limit=_size("--memory-limit", arguments.memory_limit, machine.whole(settings)),
            cpu_pool=_size("--cpu-pool", arguments.cpu_pool, machine.host),
        )
    except ValueError as error:
        trouble = f" ({machine.trouble})" if machine.trouble else ""
        raise Refusal(f"{unusable(error)}{trouble}") from error


def bounds(
    settings: Settings, smallest: str | None, largest: str | None, machine: Machine
) -> tuple[int | None, int | None, int | None]:
    """Return the *smallest* and the *largest* limit to try, if they are given, and the size of the memory; in bytes.

    Raises:
        Refusal: one of them is not a size, or larger than the memory, or the smallest is above the largest.
    """
    whole = machine.host if settings.gpus == () else machine.whole(settings)
    least = _size("--from", smallest, whole)
    most = _size("--to", largest, whole)
    if least is not None and most is not None and least > most:
        raise Refusal(usage.bounds_crossed(smallest, largest))
    return least, most, whole.size


def _size(flag: str, text: str | None, whole: Whole) -> int | None:
    if text is None:
        return None
    try:
        return parse_limit(text, whole)
    except ValueError as error:
        raise Refusal(f"{flag}: {unusable(error)}") from error
