"""Which GPUs TensorFlow has, and how it divides them."""

import re
from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import count, had, hooked_of_run, output, said, uses, variable

_NO_LIBRARIES = "Cannot dlopen some GPU libraries"
_NO_CUDA = "failed call to cuInit"
_NOT_LOADED = re.compile(r"Could not load dynamic library '([^'\s]{1,80})'")

SETTLED_S = 5.0


def no_gpu_seen(state: State) -> Iterator[Finding]:
    """The driver has a GPU, TensorFlow has none, and nobody wished it so."""
    run = state.run
    if run is None or not state.devices or run.settings.gpus == () or had(state):
        return  # a worker that leaves the GPU to others of its run is no matter
    processes = list(hooked_of_run(state))
    for pid, hooked in processes:
        told = said(state, _NO_LIBRARIES, _NO_CUDA)
        # TensorFlow makes all its devices at once; a few seconds leave room for those not told of yet.
        times = [effective.t for effective in hooked.effective.values()]
        if hooked.initialised and not hooked.initialised.error:
            times.append(hooked.initialised.t)
        made = any(state.now - t >= SETTLED_S for t in times)
        # Of several processes, who wrote it is not known: a worker may do without the GPU.
        if not (made or (told and len(processes) == 1)):
            continue
        hidden = variable(state, pid, "CUDA_VISIBLE_DEVICES")
        unseen = [r for r in hooked.requested if r.call == "set_visible_devices" and _hides_gpus(r.arguments)]
        if unseen and unseen[-1].error is None:
            continue  # the script's own wish
        gpus = count(len(state.devices), "GPU")
        text = f"TensorFlow in process {pid} computes on the CPU, though the driver has {gpus} here: "
        if hidden is not None and hidden.strip() in ("", "-1"):
            it = "it" if len(state.devices) == 1 else "them"
            yield Finding(
                "info",  # somebody may have wished it so
                f"{text}CUDA_VISIBLE_DEVICES={hidden} in the environment hides {it}.",
                "[V] chooses GPUs",
                "Set by the shell, the job's settings or the script itself before TensorFlow made its devices, it "
                "leaves CUDA no GPU. TensorFlow goes on without a word in the program's own output.",
                ("unset CUDA_VISIBLE_DEVICES",),
                "no-gpu",
            )
            return
        libraries = ", ".join(dict.fromkeys(_NOT_LOADED.findall(output(state))))
        if told == _NO_LIBRARIES and libraries:
            why = f"it could not load {libraries}"
        elif told == _NO_LIBRARIES:
            why = "it could not load some of CUDA's libraries (with TF_CPP_MAX_VLOG_LEVEL=1 it names them)"
        elif told == _NO_CUDA:
            why = "CUDA could not be started, or CUDA_VISIBLE_DEVICES hides the GPU"
        else:
            why = "CUDA_VISIBLE_DEVICES may hide it, CUDA's libraries may be missing, or this TensorFlow has no CUDA"
        yield Finding(
            "warning",
            f"{text}{why}.",
            "[V] chooses GPUs; [Enter] on the process shows its environment",
            "TensorFlow goes on without a word in the program's own output when it cannot use the GPU. Its wheel for "
            "pip needs the extra and-cuda, which brings CUDA's libraries in the version it was built for.",
            (
                "pip install 'tensorflow[and-cuda]'",
                "python -c 'import tensorflow as tf; print(tf.config.list_physical_devices(\"GPU\"))'",
            ),
            "no-gpu",
        )
        return


def _hides_gpus(arguments: str) -> bool:
    """Whether ``set_visible_devices`` with these leaves no GPU: ``[], GPU``, not ``[], CPU``."""
    return arguments.startswith("[]") and "CPU" not in arguments


def logical_devices_beyond_card(state: State) -> Iterator[Finding]:
    """The limits of one GPU's logical devices come to more than it has."""
    found = [use for use in uses(state) if use.card and use.asked_limit is not None]
    for pid in dict.fromkeys(use.pid for use in found):
        for index in dict.fromkeys(use.card.info.index for use in found if use.pid == pid and use.card):
            here = [use for use in found if use.pid == pid and use.card and use.card.info.index == index]
            whole = state.devices[index].info.total
            limits = [use.asked_limit or 0 for use in here]
            if whole is None or sum(limits) <= whole:
                continue
            said_so = f"GPU {index} has a limit of {format_bytes(limits[0])}, and the card has {format_bytes(whole)}"
            ends = "it will run out of memory before its limit"
            if len(here) > 1:
                said_so = (
                    f"{len(here)} logical devices of GPU {index} have limits of {format_bytes(sum(limits))} together, "
                    f"and the card has {format_bytes(whole)}"
                )
                ends = "the last to grow will run out of memory before its limit"
            yield Finding(
                "warning",
                f"{said_so}: {ends}.",
                "[L] shares one limit among them" if len(here) > 1 else "[L] sets another",
                "TensorFlow takes the limits as they are given and does not compare them with the card. Each logical "
                "device has a pool of its own; what one does not use no other can have. Some "
                "610 MiB a process go to CUDA's context and libraries besides.",
                key="logical-beyond-card",
            )
