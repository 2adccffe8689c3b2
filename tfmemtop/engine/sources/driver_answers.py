"""What the answers of NVIDIA's driver mean: its errors, and figures that are impossible.

An error is a notice to the user, or the reason why a figure is missing. Impossible figures are left out, and the
reading reports that.
"""

from typing import Any, NamedTuple

from tfmemtop.events import Lacking, Level, NoticeKind, SharesMissing, WhyLacking

LARGEST_MEMORY = 1 << 50  # bytes; a PiB on one card
LARGEST_POWER_MW = 100_000_000
TEMPERATURES_C = (-100, 300)
LARGEST_PID = 1 << 22  # the kernel's own highest for pid_max
MOST_CARDS = 1024
MOST_PROCESSES = 65_536

NOT_AVAILABLE = (1 << 64) - 1
"""The value by which NVML reports that it does not know a process's memory (NVML_VALUE_NOT_AVAILABLE)."""

_SHOWN = 24  # characters of an impossible figure
_TOLD = 64  # impossible figures of one reading


class Trouble(NamedTuple):
    """A problem that the user should know, or, with no ``kind``, the end of it. The fields are those of a notice."""

    key: str
    kind: NoticeKind | None = None
    level: Level = Level.INFO
    detail: str = ""
    about: int | None = None


NO_DRIVER = Trouble("nvml", NoticeKind.NO_DRIVER)
NO_GPU = Trouble("nvml", NoticeKind.NO_GPU)


def explain(library: Any, error: Exception) -> Trouble:
    """Return why the library could not be opened, from the *error* that it raised."""
    code = getattr(error, "value", None)
    if code in (library.NVML_ERROR_LIBRARY_NOT_FOUND, library.NVML_ERROR_DRIVER_NOT_LOADED):
        return NO_DRIVER
    if code == library.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return Trouble("nvml", NoticeKind.DRIVER_MISMATCH, Level.ERROR)
    if code == library.NVML_ERROR_NO_PERMISSION:
        return Trouble("nvml", NoticeKind.DRIVER_FORBIDDEN, Level.ERROR)
    return Trouble("nvml", NoticeKind.DRIVER_FAILED, Level.ERROR, str(error))


def lost(index: int) -> Trouble:
    """Return the trouble of a card that was there and is there no longer."""
    return Trouble(f"gpu{index}", NoticeKind.GPU_LOST, Level.ERROR, about=index)


def refused(library: Any, codes: dict[str, int | None], part: bool) -> list[Lacking]:
    """Return which figures are missing and why.

    *codes* has the error code of each figure. *part* is true for a slice of a divided card (MIG).
    """
    by_code = {
        library.NVML_ERROR_NOT_SUPPORTED: WhyLacking.NOT_OF_A_PART if part else WhyLacking.NOT_REPORTED,
        library.NVML_ERROR_NO_PERMISSION: WhyLacking.NOT_FOR_USER,
        library.NVML_ERROR_FUNCTION_NOT_FOUND: WhyLacking.OLD_DRIVER,
        library.NVML_ERROR_GPU_IS_LOST: WhyLacking.CARD_LOST,
    }
    names: dict[WhyLacking, list[str]] = {}
    for name, code in codes.items():
        names.setdefault(by_code.get(code, WhyLacking.FAILED), []).append(name)
    return [Lacking(why, figures) for why, figures in names.items()]


def no_shares(library: Any, code: int | None, *, mig: bool, vgpu: bool, wsl: bool) -> SharesMissing:
    """Return why the memory of each process is not known.

    *code* is the error code of the call that lists the processes, or ``None`` if that call did not fail.
    """
    if mig:
        return SharesMissing.MIG
    if wsl:
        return SharesMissing.WSL
    if vgpu:
        return SharesMissing.VGPU
    if code == library.NVML_ERROR_FUNCTION_NOT_FOUND:
        return SharesMissing.DRIVER_TOO_OLD
    if code == library.NVML_ERROR_NO_PERMISSION:
        return SharesMissing.USER_FORBIDDEN
    return SharesMissing.NOT_TOLD


class Sieve:
    """Separates the possible figures of one reading from the impossible ones, and keeps the latter by name."""

    def __init__(self) -> None:
        self.held_back: dict[str, str] = {}

    def figure(self, name: str, value: Any, most: int, least: int = 0) -> int | None:
        """Return *value* if it is a whole number from *least* to *most*, else ``None``."""
        if value is None:
            return None
        if type(value) is int and least <= value <= most:
            return value
        self.held_back.setdefault(name, str(value)[:_SHOWN])
        return None

    def lacking(self) -> list[Lacking]:
        """Return the names of the impossible figures, with their values."""
        told = [f"{name} {value}" for name, value in self.held_back.items()]
        return [Lacking(WhyLacking.IMPOSSIBLE, told[:_TOLD])] if told else []
