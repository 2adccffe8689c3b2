"""Memory that the process holds outside TensorFlow's pool."""

from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.state.account import USUAL_CONTEXT, USUAL_LIBRARIES, accounts
from tfmemtop.state.model import RESTS_KEPT
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import MIB, hooked_of_run, uses, variable

BEYOND_USUAL = 512 * MIB
"""What context and libraries may differ by between cards, drivers and models before it is worth a doubt."""

USUAL_BETWEEN = 1024 * MIB
"""NCCL's buffers in a process that computes on several GPUs: 858 MiB each on two H200s, and no more on four."""


def outside_the_pool(state: State) -> Iterator[Finding]:
    """More is outside the pool than a CUDA context and TensorFlow's libraries take."""
    for pid, hooked in hooked_of_run(state):
        several = len({use.card.info.index for use in uses(state) if use.pid == pid and use.card}) > 1
        usual = USUAL_CONTEXT + USUAL_LIBRARIES + (USUAL_BETWEEN if several else 0)
        for account in accounts(state, pid):
            seen = hooked.contexts.get(account.gpu)
            if account.outside is None or seen is None or len(seen.recent) < RESTS_KEPT:
                continue
            # The least of several: a pool that grows between two readings is not outside for it.
            beside = min(seen.recent)
            if beside < usual + BEYOND_USUAL:
                continue
            eager = variable(state, pid, "CUDA_MODULE_LOADING") == "EAGER"
            who = "most likely another library in the process that takes memory itself (CuPy, PyTorch, JAX, RAPIDS)"
            who += ", or NCCL's buffers" if several else ""
            who += ", or kernels, all of which CUDA_MODULE_LOADING=EAGER loads at once" if eager else ""
            yield Finding(
                "warning",
                f"GPU {account.gpu}: {format_bytes(beside)} of process {pid}'s memory are outside TensorFlow's pool, "
                f"where some {format_bytes(usual)} are usual; {who}.",
                "[Enter] on the process shows the split; no limit of TensorFlow's covers it",
                f"NVML counts {format_bytes(account.total)} for the process, TensorFlow's pool has "
                f"{format_bytes((account.total or 0) - beside)} of it. On an H200 a CUDA context takes "
                f"{format_bytes(USUAL_CONTEXT)}, workspaces of cuBLAS and cuDNN {format_bytes(USUAL_LIBRARIES)}"
                + (f", NCCL's buffers between GPUs up to {format_bytes(USUAL_BETWEEN)}" if several else "")
                + "; other cards and drivers differ, and CUDA before 11.7 loads all kernels at once. What calls CUDA "
                "by itself has a pool of its own, that neither get_memory_info nor a memory limit of TensorFlow sees.",
                key="outside-the-pool",
                place=f"GPU {account.gpu}",
            )
