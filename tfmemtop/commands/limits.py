"""What a typed size means on this machine, and whether the machine has that much."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tfmemtop.commands.arguments import Arguments
from tfmemtop.engine.cgroup import Owner
from tfmemtop.options import Refusal
from tfmemtop.settings import MIB, Settings, carry
from tfmemtop.units import format_bytes, parse_size


@dataclass(frozen=True)
class Machine:
    """The GPUs' UUIDs and memory in NVML's order, and the host's memory, or what a cgroup leaves of it; bytes.

    ``trouble`` says why there may be GPUs that cannot be read.
    """

    uuids: Sequence[str]
    totals: Sequence[int | None]
    host_memory: int
    host_memory_of: Owner = "machine"
    trouble: str = ""

    @property
    def host(self) -> str:
        """Whose the host memory is, as words."""
        return f"this {'control group' if self.host_memory_of == 'cgroup' else self.host_memory_of}"


def resolve(arguments: Arguments, machine: Machine) -> Settings:
    """The settings with sizes in bytes, checked against *machine*.

    A share is one of the smallest GPU that the script may see; without a GPU, of host memory.

    Raises:
        Refusal: something is no size, or more than there is, or on a GPU that is not there.
    """
    settings = arguments.settings
    try:
        carry(settings, machine.uuids)
        whole, owner = _whole(settings, machine)
        return msgspec.structs.replace(
            settings,
            memory_limit=_size("--memory-limit", arguments.memory_limit, whole, owner),
            cpu_pool=_size("--cpu-pool", arguments.cpu_pool, machine.host_memory, machine.host),
        )
    except ValueError as error:
        trouble = f" ({machine.trouble})" if machine.trouble else ""
        raise Refusal(f"{error}{trouble}") from error


def bounds(arguments: Arguments, machine: Machine) -> tuple[int | None, int | None, int | None]:
    """The smallest and the largest limit to try, as far as they are given, and what there is at all; bytes.

    Raises:
        Refusal: one is no size, or more than there is, or the smallest is above the largest.
    """
    settings = arguments.settings
    on_gpu = bool(machine.uuids) and settings.gpus != ()
    whole, owner = _whole(settings, machine) if on_gpu else (machine.host_memory, machine.host)
    smallest = _size("--from", arguments.smallest, whole, owner)
    largest = _size("--to", arguments.largest, whole, owner)
    if smallest is not None and largest is not None and smallest > largest:
        raise Refusal(f"--from {arguments.smallest} is more than --to {arguments.largest}")
    return smallest, largest, whole


def _whole(settings: Settings, machine: Machine) -> tuple[int | None, str]:
    """How much a limit is a share of, and whose that is."""
    if not machine.uuids:
        return machine.host_memory, machine.host
    visible = range(len(machine.uuids)) if settings.gpus is None else settings.gpus
    known = {index: total for index in visible if (total := machine.totals[index]) is not None}
    smallest = min(known, key=known.__getitem__, default=None)
    return None if smallest is None else known[smallest], f"GPU {smallest}"


def _size(flag: str, text: str | None, whole: int | None, owner: str) -> int | None:
    if text is None:
        return None
    try:
        size = parse_size(text, whole)
    except ValueError as error:
        raise Refusal(f"{flag}: {error}") from error
    if whole is not None and size > whole:
        raise Refusal(f"{flag}: {text} is more than {owner} has, {format_bytes(whole)}")
    if size < MIB:
        raise Refusal(f"{flag}: {text} is less than 1 MiB, the smallest that TensorFlow can be given")
    return size
