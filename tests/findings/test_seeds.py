"""What people report about TensorFlow's GPU memory, recorded on an NVIDIA H200, and the findings in each recording.

The recordings are those of ``python -m tests.gpu.seeds``.
"""

from functools import cache
from pathlib import Path

import pytest

from tfmemtop.events import recording
from tfmemtop.findings.finding import Finding
from tfmemtop.findings.judgement import Judged
from tfmemtop.findings.review import RunReview, review
from tfmemtop.findings.rules.busy import FullButIdle
from tfmemtop.findings.rules.devices import LimitsBeyondCard
from tfmemtop.findings.rules.ending import RunEnded
from tfmemtop.findings.rules.others import OthersHoldCard, TwoReserveCard
from tfmemtop.findings.rules.out_of_memory import AllocationFailed, NoRoom
from tfmemtop.findings.rules.outside import OutsidePool
from tfmemtop.findings.rules.pool import CachedButIdle, WholeCard
from tfmemtop.findings.rules.retracing import Retraced
from tfmemtop.findings.rules.settings import (
    AskedTooLate,
    CallRefused,
    GrowthDropped,
    GrowthOverridden,
    GrowthWordIgnored,
)

RECORDINGS = Path(__file__).parents[1] / "recordings" / "seeds"
MIB, GIB = 2**20, 2**30

FOUND: dict[str, set[type[Finding]]] = {
    "default": {WholeCard},
    "growth-all": set(),
    "growth-one": set(),
    "growth-no-device": {CallRefused, WholeCard},
    "growth-too-late": {AskedTooLate, WholeCard},
    "growth-then-limit": {GrowthDropped},
    "small-tensor": set(),
    "gradient": set(),
    "kernel-again": set(),
    "warm-function": set(),
    "batch-sizes": set(),
    "visible-first": {WholeCard},
    "limit-1g": set(),
    "limit-4g": set(),
    "two-logical": set(),
    "beyond-card": {LimitsBeyondCard},
    "cuda-beside": {OutsidePool},
    "deleted": {CachedButIdle},
    "nvidia-smi": set(),
    "variable-false": {GrowthOverridden, WholeCard},
    "variable-1": {GrowthWordIgnored, WholeCard},
    "full-but-idle": {FullButIdle, WholeCard},
    "cut-up": {NoRoom, AllocationFailed},
    "retraced": {Retraced, WholeCard},
    "others": {OthersHoldCard},
    "twins": {TwoReserveCard, OthersHoldCard},
}


@cache
def seen_in(name: str) -> RunReview:
    return review(recording.read(RECORDINGS / f"{name}.jsonl").events())


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_on_a_real_gpu(name: str) -> None:
    seen = seen_in(name)
    assert {type(held.finding) for held in seen.held} - {RunEnded, Judged} == FOUND[name]


SAID = {
    ("growth-too-late", AskedTooLate): ("had TensorFlow initialise its devices before", "growth_too_late.py:"),
    ("variable-1", GrowthWordIgnored): ("TF_FORCE_GPU_ALLOW_GROWTH=1 is ignored",),
    ("full-but-idle", FullButIdle): (
        "GPU 0 is full but idle: its utilisation averaged 0%.",
        "138.0 GiB of 140.4 GiB are taken; the average is over 30 s",
    ),
    ("cut-up", NoRoom): (
        "Fill at cut_up.py:13 asked for more than 64.0 MiB",
        "If it asked for less than 544.0 MiB, the pool is fragmented",
    ),
    ("cut-up", AllocationFailed): (
        "Fill at cut_up.py:13 asked for 200.0 MiB",
        "The pool is fragmented: 544.0 MiB were free, in chunks up to 64.0 MiB.",
    ),
    ("retraced", Retraced): ("tf.function `<lambda>` (retraced.py:6) was traced in 60 of its 60 calls",),
    ("twins", TwoReserveCard): ("(1.5 GiB)", "(138.1 GiB)."),
}


@pytest.mark.parametrize(("name", "kind"), SAID)
def test_what_a_finding_says_of_a_real_gpu(name: str, kind: type[Finding]) -> None:
    seen = seen_in(name)
    (text,) = [held.finding.said.text for held in seen.held if isinstance(held.finding, kind)]
    for phrase in SAID[name, kind]:
        assert phrase in text


def test_the_error_was_told_ten_seconds_before_tensorflow_raised_it() -> None:
    seen = seen_in("cut-up")
    held = {type(held.finding): held for held in seen.held}
    assert held[AllocationFailed].first - held[NoRoom].first > 8


MEASURED = ("growth-all", "growth-one", "gradient", "kernel-again", "small-tensor", "deleted", "nvidia-smi", "others")


@pytest.mark.parametrize("name", MEASURED)
def test_the_context_was_measured_where_nothing_was_computed_at_once(name: str) -> None:
    account = seen_in(name).account
    # To the MiB, the context is the same in every process on this card, whatever the process computed.
    assert account is not None and account.context_exact and account.context == 518 * MIB


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
    account = seen_in(name).account
    assert account is not None and account.total is not None
    least, most = POOLS[name]
    pool = sum(max(part.in_use or 0, part.pool or 0) for part in account.pools)
    assert least <= pool <= most
    # The difference is context, workspaces and kernels, which no setting of TensorFlow changes.
    assert 500 * MIB <= account.total - pool <= 700 * MIB
