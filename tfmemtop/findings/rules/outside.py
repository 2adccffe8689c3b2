"""The rule for GPU memory that a process holds outside TensorFlow's pool."""

from collections.abc import Iterator

from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import DeviceFinding, Said, Severity
from tfmemtop.findings.names import Place, place_name
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules import rule
from tfmemtop.findings.rules.others import script_name
from tfmemtop.findings.run_devices import hooked_of_run, run_devices, variable
from tfmemtop.state import State
from tfmemtop.state.account import USUAL_CONTEXT, USUAL_LIBRARIES, accounts
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import RESTS_KEPT, Context, ProcessState
from tfmemtop.units import MIB, format_bytes

BEYOND_USUAL = 512 * MIB
"""Context and libraries differ by up to this between cards, drivers and models."""

USUAL_BETWEEN = 1024 * MIB
"""NCCL's buffers in a process that computes on several GPUs, or with other ranks.

858 MiB each on two H200s in one process, and no more on four; 840 MiB for each of two ranks on two H200s.
"""


class OutsidePool(DeviceFinding, frozen=True):
    """``outside`` of a process's ``total`` bytes on a GPU are not in TensorFlow's pool; ``usual`` bytes are usual.

    ``between_gpus`` if the process computes on several GPUs, or with other ranks, for which it needs buffers.
    ``eager`` if CUDA loads all kernels at once.
    """

    key = Key.OTHER_FRAMEWORK

    remedies = (Action.SHOW_PROCESS,)

    pid: int
    outside: int
    usual: int
    total: int
    between_gpus: bool
    eager: bool

    @property
    def said(self) -> Said:
        who = "JAX, PyTorch, CuPy and RMM are counted apart where they are read. This may be another library"
        who += ", or NCCL's buffers" if self.between_gpus else ""
        who += ", or kernels, all of which CUDA_MODULE_LOADING=EAGER loads at once" if self.eager else ""
        buffers = f", NCCL's buffers between GPUs up to {format_bytes(USUAL_BETWEEN)}" if self.between_gpus else ""
        return Said(
            f"{place_name(self.place)}: process {self.pid} holds {format_bytes(self.outside)} outside TensorFlow's "
            f"pool. About {format_bytes(self.usual)} are usual.",
            f"NVML counts {format_bytes(self.total)} for the process, of which TensorFlow's pool has "
            f"{format_bytes(self.total - self.outside)}. On an H200 a CUDA context takes "
            f"{format_bytes(USUAL_CONTEXT)}, workspaces of cuBLAS and cuDNN {format_bytes(USUAL_LIBRARIES)}{buffers}; "
            "other cards and drivers differ, and CUDA before 11.7 loads all kernels at once. A library that calls "
            "CUDA itself has a pool of its own, which get_memory_info does not see and no memory limit of TensorFlow "
            "covers.",
            figures=f"{who}.",
        )


@rule(230)
def outside_the_pool(state: State) -> Iterator[OutsidePool]:
    """Find processes that hold more outside the pool than a CUDA context and TensorFlow's libraries take."""
    for pid, hooked in hooked_of_run(state):
        if not any(map(_much, hooked.contexts.values())):
            continue
        several = _computes_on_several(state, pid)
        usual = USUAL_CONTEXT + USUAL_LIBRARIES + (USUAL_BETWEEN if several else 0)
        for account in accounts(state, pid):
            seen = hooked.contexts.get(account.gpu)
            if account.outside is None or seen is None or not _much(seen):
                continue
            outside = min(seen.recent)
            if outside >= usual + BEYOND_USUAL:
                yield OutsidePool(
                    Place(account.gpu),
                    pid=pid,
                    outside=outside,
                    usual=usual,
                    total=account.total or 0,
                    between_gpus=several,
                    eager=variable(state, pid, "CUDA_MODULE_LOADING") == "EAGER",
                )


def _much(context: Context) -> bool:
    """Return whether the memory outside the pools may be so much that a finding is due."""
    # The least of several, since a pool may grow between two readings of NVML and of the allocator.
    return len(context.recent) == RESTS_KEPT and min(context.recent) >= USUAL_CONTEXT + USUAL_LIBRARIES + BEYOND_USUAL


def _computes_on_several(state: State, pid: int) -> bool:
    """Return whether the process exchanges data with other GPUs: with those of its own, or as one of several ranks."""
    placement = state.session.placement if state.session else None
    if placement and placement.among_others:
        return True
    return len({device.card.info.index for device in run_devices(state) if device.pid == pid and device.card}) > 1


SETTLED_S = 15.0
"""Seconds that a process has to import TensorFlow and make its devices, or to be seen using it without the hook."""


class HeldBeside(DeviceFinding, frozen=True):
    """Process ``pid`` of the run, which runs ``script``, holds ``used`` bytes of a card, and not through TensorFlow.

    ``script`` is empty where it is not known.
    """

    severity = Severity.INFO

    pid: int
    script: str
    used: int

    @property
    def said(self) -> Said:
        script = f" ({self.script})" if self.script else ""
        return Said(
            f"{place_name(self.place)}: process {self.pid}{script} holds {format_bytes(self.used)} outside TensorFlow.",
            "Another library uses CUDA in this process of the run, such as JAX, PyTorch, CuPy or RAPIDS. A CUDA "
            f"context alone takes {format_bytes(USUAL_CONTEXT)} on an H200. No setting of TensorFlow changes what it "
            "holds. TensorFlow in other processes gets what it leaves.",
            figures="TensorFlow has made no device in it.",
        )


@rule(240)
def held_beside(state: State) -> Iterator[HeldBeside]:
    """Find processes of the run that have memory on a card, and in which TensorFlow has made no devices."""
    for index, card in state.devices.items():
        for pid, share in card.by_pid.items():
            process = state.processes.get(pid)
            if process is None or not share.used or not of_run(state, pid) or not _without(process, state.now):
                continue
            yield HeldBeside(Place(index), pid, script_name(process), share.used)


def _without(process: ProcessState, now: float) -> bool:
    """Return whether TensorFlow has made no devices in *process*, although there was time for it."""
    hooked = process.hooked
    if process.outside is not None:
        return False  # TensorFlow's share is not known until its pools are read
    if hooked is None:
        return process.seen.hook_absence is None and now - process.seen.t >= SETTLED_S
    devices = hooked.effective or hooked.allocators or hooked.initialised or hooked.frameworks
    return not devices and now - hooked.hello.t >= SETTLED_S
