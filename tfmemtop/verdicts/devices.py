"""Which GPUs TensorFlow has, and how it divides them."""

from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import count, hooked_of_run, said, uses, variable

_NO_LIBRARIES = "Cannot dlopen some GPU libraries"
_NO_CUDA = "failed call to cuInit"

SETTLED_S = 5.0


def no_gpu_seen(state: State) -> Iterator[Finding]:
    """The driver has a GPU, TensorFlow has none, and nobody wished it so."""
    run = state.run
    if run is None or not state.devices or run.settings.gpus == () or uses(state):
        return  # a worker that leaves the GPU to others of its run is no matter
    for pid, hooked in hooked_of_run(state):
        told = said(state, _NO_LIBRARIES, _NO_CUDA)
        # TensorFlow makes all its devices at once; a few seconds leave room for those not told of yet.
        made = any(state.now - effective.t >= SETTLED_S for effective in hooked.effective.values())
        if not (made or told):
            continue
        hidden = variable(state, pid, "CUDA_VISIBLE_DEVICES")
        unseen = [r for r in hooked.requested if r.call == "set_visible_devices" and r.arguments.startswith("[]")]
        if unseen and unseen[-1].error is None:
            continue  # the script's own wish
        if hidden is not None and hidden.strip() in ("", "-1"):
            why = f"CUDA_VISIBLE_DEVICES={hidden} hides it"
        elif told == _NO_LIBRARIES:
            why = "it could not load some of CUDA's libraries (its own lines in the output name them)"
        elif told == _NO_CUDA:
            why = "CUDA could not be started, or CUDA_VISIBLE_DEVICES hides the GPU"
        else:
            why = "CUDA_VISIBLE_DEVICES may hide it, CUDA's libraries may be missing, or this TensorFlow has no CUDA"
        gpus = count(len(state.devices), "GPU")
        yield Finding(
            "warning",
            f"TensorFlow in process {pid} computes on the CPU, though the driver has {gpus} here: {why}.",
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
            which = f"{count(len(here), 'logical device')} of GPU {index} have limits of" if len(here) > 1 else (
                f"GPU {index} has a limit of"
            )  # fmt: skip
            yield Finding(
                "warning",
                f"{which} {format_bytes(sum(limits))} together, and the card has {format_bytes(whole)}: the last "
                "to grow will run out of memory before its limit.",
                "[L] shares one limit among them",
                "TensorFlow takes the limits as they are given and does not compare them with the card. Each logical "
                "device has a pool of its own; what one does not use no other can have. Some "
                "610 MiB a process go to CUDA's context and libraries besides.",
                key="logical-beyond-card",
            )
