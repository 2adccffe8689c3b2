"""Memory that the process holds outside TensorFlow's pool."""

from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.state.account import USUAL_CONTEXT, USUAL_LIBRARIES, accounts
from tfmemtop.state.model import RESTS_KEPT
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import MIB, hooked_of_run

BEYOND_USUAL = 512 * MIB
"""What context and libraries may differ by between cards, drivers and models before it is worth a doubt."""


def outside_the_pool(state: State) -> Iterator[Finding]:
    """More is outside the pool than a CUDA context and TensorFlow's libraries take."""
    usual = USUAL_CONTEXT + USUAL_LIBRARIES
    for pid, hooked in hooked_of_run(state):
        for account in accounts(state, pid):
            seen = hooked.contexts.get(account.gpu)
            if account.outside is None or seen is None or len(seen.recent) < RESTS_KEPT:
                continue
            # The least of several: a pool that grows between two readings is not outside for it.
            beside = min(seen.recent)
            if beside < usual + BEYOND_USUAL:
                continue
            several = len(state.devices) > 1 and sum(1 for device in state.devices.values() if pid in device.by_pid) > 1
            who = "most likely another library in the process that takes memory itself (CuPy, PyTorch, JAX, RAPIDS)"
            who += ", or NCCL's buffers" if several else ""
            yield Finding(
                "warning",
                f"GPU {account.gpu}: {format_bytes(beside)} of process {pid}'s memory are outside TensorFlow's pool, "
                f"where some {format_bytes(usual)} are usual; {who}.",
                "no limit of TensorFlow's covers it; [Enter] on the process shows the split",
                f"NVML counts {format_bytes(account.total)} for the process, TensorFlow's pool has "
                f"{format_bytes((account.total or 0) - beside)} of it. On an H200 a CUDA context takes "
                f"{format_bytes(USUAL_CONTEXT)}, workspaces of cuBLAS and cuDNN {format_bytes(USUAL_LIBRARIES)}; "
                "other cards and drivers differ. What calls CUDA by itself has a pool of its own, that neither "
                "get_memory_info nor a memory limit of TensorFlow sees.",
                key="outside-the-pool",
            )
