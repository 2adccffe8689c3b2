"""Which rank of which job this is, as labels. Pure."""

from collections.abc import Mapping

import msgspec


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The labels ``job`` and ``rank``; empty where the run is of no job."""

    job: str = ""
    rank: str = ""


def identity(environment: Mapping[str, str]) -> Identity:
    """Job and rank as Slurm tells them in the user's *environment*."""
    return Identity(job=environment.get("SLURM_JOB_ID", ""), rank=environment.get("SLURM_PROCID", ""))
