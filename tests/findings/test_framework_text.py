"""What JAX, PyTorch and CuPy write when memory runs out, in the forms that their versions have."""

import pytest
from msgspec.structs import replace

from tests.streams import GIB, MIB
from tfmemtop.findings.rules.framework_memory import FrameworkExhausted, parse_framework_exhausted
from tfmemtop.frameworks import FrameworkName

TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 80.00 GiB "
    "of which 1.50 GiB is free. {who}Of the allocated memory 60.00 GiB is allocated by PyTorch, {pools}and 512.00 MiB "
    "is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)


def parsed(text: str) -> FrameworkExhausted:
    found = parse_framework_exhausted(text)
    assert found is not None
    assert found.message in text
    return found


def test_pytorch_names_card_process_and_pool() -> None:
    others = "Process 7 has 16.00 GiB memory in use. "
    who = f"{others}Including non-PyTorch memory, this process has 62.00 GiB memory in use. "
    found = parsed(TORCH.format(who=who, pools=""))
    assert found.message.startswith("CUDA out of memory") and found.message.endswith("PyTorch but unallocated.")
    assert replace(found, message="") == FrameworkExhausted(
        FrameworkName.PYTORCH,
        "",
        4 * GIB,
        card=80 * GIB,
        free=3 * GIB // 2,
        allocated=60 * GIB,
        cached=512 * MIB,
        process=62 * GIB,
    )
    assert parsed(TORCH.format(who=who, pools="").replace("1.50 GiB", "0 bytes")).free == 0


def test_pytorch_names_its_limit_and_may_not_name_the_process() -> None:
    pools = "with 1.00 GiB allocated in private pools (e.g., CUDA Graphs), "
    found = parsed(TORCH.format(who="20.00 GiB allowed; ", pools=pools))
    assert (found.allowed, found.process, found.cached) == (20 * GIB, None, 512 * MIB)


XLA = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: "


@pytest.mark.parametrize(
    "text",
    [
        XLA + "Out of memory while trying to allocate 1073741824 bytes.",
        XLA + "Out of memory allocating 1073741824 bytes.\nBufferAssignment OOM Debugging.",
        XLA + "Failed to allocate request for 1.00GiB (1073741824B) on device ordinal 0",
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.00GiB.",
    ],
)
def test_jax_names_only_the_request(text: str) -> None:
    assert replace(parsed(text), message="") == FrameworkExhausted(FrameworkName.JAX, "", GIB)


def test_cupy() -> None:
    text = "OutOfMemoryError: Out of memory allocating 1,073,741,824 bytes (allocated so far: 1,024 bytes)."
    assert replace(parsed(text), message="") == FrameworkExhausted(FrameworkName.CUPY, "", GIB, allocated=1024)


def test_the_last_failure_counts_and_tensorflows_own_is_none() -> None:
    later = "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.00GiB."
    both = TORCH.format(who="", pools="") + "\n" + later
    assert replace(parsed(both), message="") == FrameworkExhausted(FrameworkName.JAX, "", 2 * GIB)
    assert parse_framework_exhausted("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 64 bytes.") is None
