"""What is said where NVIDIA's driver does not answer, or leaves a figure out."""

from typing import Any, NamedTuple

NAMES_NONE = "the driver names no process for the memory in use"
"""Why there are no figures by process, where what is used is much and nobody is named."""

UNIFIED = "this GPU has no memory of its own: used and free are the host's"


class Trouble(NamedTuple):
    """Something the user should know; ``text`` is empty once it is over."""

    key: str
    level: str
    text: str
    remedy: str = ""


NO_DRIVER = Trouble(
    "nvml",
    "info",
    "no NVIDIA driver here: no GPU is shown",
    "if there is one, install its driver; in a container, start it with --gpus all",
)


def explain(library: Any, error: Exception) -> Trouble:
    """Why the library could not be opened, by the *error* it gave."""
    code = getattr(error, "value", None)
    if code in (library.NVML_ERROR_LIBRARY_NOT_FOUND, library.NVML_ERROR_DRIVER_NOT_LOADED):
        return NO_DRIVER
    if code == library.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return Trouble(
            "nvml",
            "error",
            "the NVIDIA driver's library does not fit the loaded kernel module: GPUs cannot be read",
            "the driver was updated while in use: restart the machine, or reload the nvidia modules",
        )
    if code == library.NVML_ERROR_NO_PERMISSION:
        return Trouble(
            "nvml", "error", "no permission to talk to the NVIDIA driver", "check who may open /dev/nvidiactl"
        )
    return Trouble("nvml", "error", f"the GPUs cannot be read: {error}", "see what nvidia-smi says")


def lost(index: int) -> Trouble:
    """A card that was there has gone."""
    return Trouble(
        f"gpu{index}",
        "error",
        f"GPU {index} is lost: the driver no longer reaches it",
        "see the kernel's log for an Xid; it takes a reset of the card or a restart",
    )


def refused(library: Any, codes: dict[str, int | None], part: bool) -> str | None:
    """Why figures lack, by the error code of each; *part* of a divided card. ``None`` if none lacks."""
    reasons: dict[str, list[str]] = {}
    for name, code in codes.items():
        if code == library.NVML_ERROR_NOT_SUPPORTED:
            why = "the driver does not tell of a part of a card (MIG)" if part else "the driver does not tell here"
        elif code == library.NVML_ERROR_NO_PERMISSION:
            why = "the driver does not tell this user"
        elif code == library.NVML_ERROR_FUNCTION_NOT_FOUND:
            why = "this driver is too old to tell"
        elif code == library.NVML_ERROR_GPU_IS_LOST:
            why = "the card is lost, and with it"
        else:
            why = "the driver failed to tell"
        reasons.setdefault(why, []).append(name)
    return "; ".join(f"{why}: {', '.join(names)}" for why, names in reasons.items()) or None


def no_shares(library: Any, code: int | None, *, mig: bool, vgpu: bool, wsl: bool) -> str:
    """Why there is no memory by process, by the *code* of the list's error where it failed."""
    if mig:
        return "the card is divided (MIG), and the driver tells shares of processes only to root"
    if wsl:
        return "under WSL the driver does not tell memory by process"
    if vgpu:
        return "in a virtual machine with a vGPU the driver does not tell memory by process"
    if code == library.NVML_ERROR_FUNCTION_NOT_FOUND:
        return "this driver is too old to tell memory by process"
    if code == library.NVML_ERROR_NO_PERMISSION:
        return "the driver does not tell this user memory by process"
    return "the driver does not tell memory by process here"
