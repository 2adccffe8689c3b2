"""What people say about TensorFlow's GPU memory, as recorded on an NVIDIA H200: what tfmemtop finds in each.

The recordings are those of ``python -m tests.gpu.seeds``.
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
    "variable-1": {"growth-word-ignored", "whole-card"},
    "full-but-idle": {"full-but-idle", "whole-card"},
    "cut-up": {"running-out", "out-of-memory"},
    "retraced": {"retracing", "whole-card"},
    "others": {"others-hold"},
    "twins": {"two-reserve", "others-hold"},
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_on_a_real_gpu(name: str) -> None:
    course = follow(recording.read(RECORDINGS / f"{name}.jsonl").events())
    assert {told.finding.key for told in course.told} - {"ended"} == FOUND[name]


SAID = {
    ("growth-too-late", "asked-too-late"): ("had TensorFlow make its devices before", "growth_too_late.py:"),
    ("variable-1", "growth-word-ignored"): ("TF_FORCE_GPU_ALLOW_GROWTH=1 is ignored",),
    ("full-but-idle", "full-but-idle"): ("138.0 GiB of 140.4 GiB are taken", "busy for 0% of the last 30 s"),
    ("cut-up", "running-out"): (
        "Fill at cut_up.py:13 asked for more than 64.0 MiB",
        "Fragmented, if less than 544.0 MiB",
    ),
    ("cut-up", "out-of-memory"): ("Fill at cut_up.py:13 asked for 200.0 MiB", "Fragmented: 544.0 MiB of the pool were"),
    ("retraced", "retracing"): ("retraced.py:6: <lambda> was traced anew in 60 of 60 calls",),
    ("twins", "two-reserve"): ("(1.5 GiB)", "(138.1 GiB), fill the card"),
}


@pytest.mark.parametrize(("name", "key"), SAID)
def test_what_a_finding_says_of_a_real_gpu(name: str, key: str) -> None:
    course = follow(recording.read(RECORDINGS / f"{name}.jsonl").events())
    (text,) = [told.finding.text for told in course.told if told.finding.key == key]
    for phrase in SAID[name, key]:
        assert phrase in text


def test_the_error_was_told_ten_seconds_before_tensorflow_raised_it() -> None:
    told = {told.finding.key: told for told in follow(recording.read(RECORDINGS / "cut-up.jsonl").events()).told}
    assert told["out-of-memory"].first - told["running-out"].first > 8


MEASURED = ("growth-all", "growth-one", "gradient", "kernel-again", "small-tensor", "deleted", "nvidia-smi", "others")


@pytest.mark.parametrize("name", MEASURED)
def test_the_context_was_measured_where_nothing_was_computed_at_once(name: str) -> None:
    account = follow(recording.read(RECORDINGS / f"{name}.jsonl").events()).account
    # To the MiB the same in every process of this card, whatever it computed.
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
    account = follow(recording.read(RECORDINGS / f"{name}.jsonl").events()).account
    assert account is not None and account.total is not None
    least, most = POOLS[name]
    pool = sum(part.in_use + (part.cached or 0) for part in account.pools)
    assert least <= pool <= most
    # Context, workspaces and kernels: what no setting of TensorFlow's changes.
    assert 500 * MIB <= account.total - pool <= 700 * MIB
