"""What people say about TensorFlow's GPU memory, as recorded on an NVIDIA H200: what tfmemtop finds in each.

The recordings are those of ``python -m tests.gpu.seeds``; ``others`` was cut off before its script's end.
"""

from pathlib import Path

import pytest

from tfmemtop import recording
from tfmemtop.verdicts.course import follow

RECORDINGS = Path(__file__).parents[1] / "recordings" / "seeds"
MIB, GIB = 2**20, 2**30

FOUND: dict[str, set[str]] = {
    "default": {"whole-card"},
    "growth-all": set(),
    "growth-one": set(),
    "growth-no-device": {"growth-of-no-device", "whole-card"},
    "growth-too-late": {"asked-too-late", "whole-card"},
    "growth-then-limit": {"growth-dropped"},
    "small-tensor": set(),
    "gradient": set(),
    "kernel-again": set(),
    "warm-function": set(),
    "batch-sizes": set(),
    "visible-first": {"whole-card"},
    "limit-1g": set(),
    "limit-4g": set(),
    "two-logical": set(),
    "beyond-card": {"logical-beyond-card"},
    "cuda-beside": {"outside-the-pool"},
    "deleted": {"cached-idle"},
    "nvidia-smi": set(),
    "variable-false": {"growth-overridden", "whole-card"},
    "variable-1": {"whole-card"},
    "others": {"others-hold"},
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_on_a_real_gpu(name: str) -> None:
    course = follow(recording.read(RECORDINGS / f"{name}.jsonl").events())
    assert {told.finding.key for told in course.told} - {"ended"} == FOUND[name]


POOLS = {
    "default": (137 * GIB, 138 * GIB),  # growth off: all that was free, less what TensorFlow leaves
    "growth-all": (66 * MIB, 66 * MIB),
    "growth-then-limit": (4 * GIB, 4 * GIB),  # the limit dropped growth: all of it at once
    "limit-1g": (1 * GIB, 1 * GIB),
    "small-tensor": (2 * MIB, 2 * MIB),  # BFC's first region
    "deleted": (16 * GIB + 2 * MIB, 16 * GIB + 2 * MIB),  # 12 GiB at the peak; regions double, from 2 MiB
    "nvidia-smi": (1026 * MIB, 1026 * MIB),
}


@pytest.mark.parametrize("name", POOLS)
def test_the_account_adds_up(name: str) -> None:
    account = follow(recording.read(RECORDINGS / f"{name}.jsonl").events()).account
    assert account is not None and account.total is not None
    least, most = POOLS[name]
    pool = sum(part.in_use + (part.cached or 0) for part in account.pools)
    assert least <= pool <= most
    # Context, workspaces and kernels: what no setting of TensorFlow's changes.
    assert 500 * MIB <= account.total - pool <= 700 * MIB
