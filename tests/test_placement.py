"""The job and the rank of a process come from the environment variables that its starter has set."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.placement import Placement, placement

SBATCH = {"SLURM_JOB_ID": "812", "SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}
STEP = SBATCH | {"SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURMD_NODENAME": "node2"}
WORKERS = {"worker": ["a:1", "b:1"], "ps": ["c:1"]}


def tf_config(cluster: object, kind: object, index: object) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


# environment, (job, rank, ranks, local rank, host, task)
TOLD = {
    "srun": (STEP, ("812", 3, 4, 1, "node2", None)),
    "the batch script itself is no rank": (SBATCH, ("812", None, None, None, "box", None)),
    "a step smaller than its job": (
        STEP | {"SLURM_STEP_NUM_TASKS": "8", "SLURM_NTASKS": "64"},
        ("812", 3, 8, 1, "node2", None),
    ),
    "a job of an array": (
        STEP | {"SLURM_ARRAY_JOB_ID": "810", "SLURM_ARRAY_TASK_ID": "2"},
        ("810_2", 3, 4, 1, "node2", None),
    ),
    "mpirun": (
        {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
        (None, 5, 8, 1, "box", None),
    ),
    "mpirun within a batch script": (
        SBATCH | {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0"},
        ("812", 2, 4, 0, "box", None),
    ),
    "mpiexec": ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}, (None, 1, 2, 1, "box", None)),
    "PMIx tells no size": ({"PMIX_RANK": "1"}, (None, 1, None, None, "box", None)),
    "torchrun, started by Slurm once on each of two hosts": (
        STEP | {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1"},
        ("812", 9, 16, 1, "node2", None),
    ),
    "RANK alone is anybody's variable": ({"RANK": "3"}, None),
    "TF_CONFIG": (tf_config(WORKERS, "worker", 1), (None, 1, 3, None, "box", "worker 1")),
    "TF_CONFIG, a parameter server": (tf_config(WORKERS, "ps", "0"), (None, 2, 3, None, "box", "ps 0")),
    "TF_CONFIG, with a chief": (
        tf_config(WORKERS | {"chief": ["d:1"]}, "worker", 0),
        (None, 1, 4, None, "box", "worker 0"),
    ),
    "TF_CONFIG, an evaluator outside the cluster": (
        tf_config(WORKERS, "evaluator", 0),
        (None, None, None, None, "box", "evaluator 0"),
    ),
    "TF_CONFIG in a Slurm step": (
        STEP | tf_config({"worker": list("abcd")}, "worker", 3),
        ("812", 3, 4, 1, "node2", "worker 3"),
    ),
    "an Indexed Job of Kubernetes": ({"JOB_COMPLETION_INDEX": "3"}, (None, 3, None, None, "box", None)),
    "an Indexed Job of Kubernetes as in the manual": (
        {"JOB_COMPLETION_INDEX": "3", "TFMEMTOP_JOB": "train", "TFMEMTOP_RANKS": "4", "TFMEMTOP_HOST": "gpu-17"},
        ("train", 3, 4, None, "gpu-17", None),
    ),
    "what the user says comes first": (
        STEP | {"TFMEMTOP_JOB": "resnet", "TFMEMTOP_RANK": "1", "TFMEMTOP_RANKS": "2", "TFMEMTOP_HOST": "box 7"},
        ("resnet", 1, 2, None, "box 7", None),
    ),
    "PBS": ({"PBS_JOBID": "77.head"}, ("77.head", None, None, None, "box", None)),
    "torchrun without a name": (
        {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": "none"},
        (None, 0, 2, 0, "box", None),
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_each_starter_tells_job_and_rank(case: str) -> None:
    environment, expected = TOLD[case]
    found = placement(environment, "box")
    told = found and (found.job, found.rank, found.ranks, found.local_rank, found.host, found.task)
    assert told == expected


RUBBISH = {
    "nothing": {},
    "no number": STEP | {"SLURM_PROCID": "three", "SLURM_JOB_ID": ""},
    "beyond the ranks": {"OMPI_COMM_WORLD_RANK": "4", "OMPI_COMM_WORLD_SIZE": "4"},
    "below zero": {"PMI_RANK": "-1", "PMI_SIZE": "2"},
    "digits of another script": {"PMI_RANK": "\u0661", "PMI_SIZE": "\u0662"},
    "beyond all bounds": {"RANK": "9" * 5000, "WORLD_SIZE": "9" * 5001},
    "no JSON": {"TF_CONFIG": "{'cluster': 3"},
    "JSON of another kind": {"TF_CONFIG": "[1, 2]"},
    "JSON without end": {"TF_CONFIG": "[" * 100_000},
    "tasks of another kind": tf_config([1], "worker", 0),
    "an unknown task": tf_config(WORKERS, ["worker"], 0),
    "a task beyond the cluster": tf_config(WORKERS, "worker", 2),
    "a cluster without lists": tf_config({"worker": 2}, "worker", 0),
}


@pytest.mark.parametrize("case", RUBBISH)
def test_what_makes_no_sense_counts_as_not_there(case: str) -> None:
    assert placement(RUBBISH[case], "box") is None


def test_one_that_makes_no_sense_does_not_hide_one_that_does() -> None:
    found = placement({"RANK": "8", "WORLD_SIZE": "8"} | STEP, "box")
    assert found is not None
    assert (found.rank, found.source) == (3, "slurm")


NAMES = st.sampled_from(
    ["SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS", "RANK", "WORLD_SIZE", "TF_CONFIG", "TFMEMTOP_JOB"]
)
VALUES = st.text() | st.integers(-2, 9).map(str) | st.just("\udcff\x1b[2J")


@given(st.dictionaries(NAMES, VALUES), st.text())
def test_whatever_the_environment_says_can_be_recorded(environment: dict[str, str], host: str) -> None:
    found = placement(environment, host)
    if found is not None:
        assert msgspec.json.decode(msgspec.json.encode(found), type=Placement) == found
        assert "\x1b" not in f"{found.job}{found.host}"
