"""What an error of NVIDIA's driver means: as a notice to the user, or as the reason why a figure is missing."""

from typing import Any, NamedTuple

from tfmemtop.events import Lacking, Level, NoticeKind, SharesMissing, WhyLacking


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
