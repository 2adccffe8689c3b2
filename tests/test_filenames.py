"""Each rank writes to its own file, whatever name was requested."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.placement import RankName, check, named

STEP = {
    "SLURM_JOB_ID": "812",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_NTASKS": "64",
    "SLURMD_NODENAME": "node2",
}
AGAIN = STEP | {"SLURM_RESTART_COUNT": "1"}

NAMES = {
    "the example": ("run-%j-%h-%r.jsonl", STEP, RankName("run-812-node2-3.jsonl")),
    "with zeros, to sort": ("run-%3r.jsonl.gz", STEP, RankName("run-003.jsonl.gz")),
    "a percent sign": ("50%%-%r.tfm", STEP, RankName("50%-3.tfm")),
    "a name without fields": ("run.jsonl", {}, RankName("run.jsonl")),
    "a name without fields, of a rank": (
        "out/run.jsonl.gz",
        STEP,
        RankName("out/run-rank3.jsonl.gz", added="-rank3"),
    ),
    "a name with dots": ("resnet.v2.3", STEP, RankName("resnet.v2.3-rank3", added="-rank3")),
    "a hidden file": (".run", STEP, RankName(".run-rank3", added="-rank3")),
    "one rank alone": ("run.jsonl", STEP | {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, RankName("run.jsonl")),
    "the process does not tell ranks apart": ("run-%p.jsonl", STEP, RankName("run-77-rank3.jsonl", added="-rank3")),
    "started again": ("run-%r.jsonl", AGAIN, RankName("run-3-start2.jsonl", added="-start2")),
    "started again, as asked": ("run-%r-%n.jsonl", AGAIN, RankName("run-3-1.jsonl")),
    "started again, no field": ("run.jsonl", AGAIN, RankName("run-rank3-start2.jsonl", added="-rank3-start2")),
    "no scheduler": ("run-%j-%h-%r.jsonl", {}, RankName("run-nojob-box-p77.jsonl", no_job=True, no_rank="p77")),
    "an evaluator": (
        "run-%r.jsonl",
        {"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}, "task": {"type": "evaluator", "index": 0}}'},
        RankName("run-evaluator0.jsonl"),
    ),
    "a job with a path in its name": ("%j.jsonl", {"PBS_JOBID": "../77[2]"}, RankName(".._77_2_.jsonl")),
    "a job that is called like the folder above": ("runs/%j/x", {"TFMEMTOP_JOB": ".."}, RankName("runs/__/x")),
    "more digits than one": ("%12r.tfm", STEP, RankName("%12r-rank3.tfm", added="-rank3")),
    "a job started again more often than anything": ("r", {"SLURM_RESTART_COUNT": "9" * 5000}, RankName("r")),
    "a folder for each job": ("runs/%j/%r.jsonl", STEP, RankName("runs/812/3.jsonl")),
}


@pytest.mark.parametrize("case", NAMES)
def test_fields_become_what_they_stand_for(case: str) -> None:
    pattern, environment, expected = NAMES[case]
    assert named(pattern, environment, "box", 77) == expected


@given(
    st.text(st.sampled_from("ab/.%jhnrp03"), min_size=1),
    st.sets(st.integers(0, 63), min_size=2, max_size=2),
    st.sampled_from([STEP, AGAIN]),
)
def test_two_ranks_never_have_the_same_name(pattern: str, ranks: set[int], environment: dict[str, str]) -> None:
    each = {named(pattern, environment | {"SLURM_PROCID": str(rank)}, "box", 1).name for rank in ranks}
    assert len(each) == 2


@given(st.text(), st.text(min_size=1))
def test_a_job_is_one_part_of_a_path(pattern: str, job: str) -> None:
    name = named(f"%j{pattern.replace('%', '')}", {"TFMEMTOP_JOB": job}, "box", 77).name
    assert name.count("/") == pattern.count("/")


def test_a_field_that_is_not_known_is_found() -> None:
    assert check("run-%j-%3q-%%x") == "%3q"
    assert check("run-%j-%h-%r-%n-%p-%%-5%.jsonl") is None
