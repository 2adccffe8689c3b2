"""A process's place in a job of several processes, and names of files that differ by it (`%j` and the like).

Pure. Job and rank are read from environment variables. The program that starts the processes sets them. Each such
starter has variables of its own. Names and meanings are those of its documentation: Slurm's ``srun`` (OUTPUT
ENVIRONMENT VARIABLES), Open MPI's ``mpirun``, MVAPICH2, Hydra's ``mpiexec`` (PMI), PMIx, ``horovodrun``, ``torchrun``,
Kubernetes (an Indexed Job) and TensorFlow's ``TF_CONFIG``.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from tfmemtop.bounds import Name

Ordinal = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A rank, or the number of ranks."""

Source = Literal[
    "user", "openmpi", "mvapich", "horovod", "pmi", "torchrun", "slurm", "tf_config", "pmix", "kubernetes", "scheduler"
]

_LONGEST = 200  # characters of a name, which must fit into a label of Prometheus and a part of a file's name
_TASKS = ("chief", "master", "worker", "ps", "evaluator")  # in the order in which TensorFlow numbers them


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a process's place in a job: at least the job, the rank or the task.

    ``rank`` counts from 0 and is below ``ranks``; ``local_rank`` counts the ranks on one host. ``host`` is the
    scheduler's name for the machine if it has one, else the machine's own name. ``task`` is the task in ``TF_CONFIG``,
    such as ``worker 1``. ``source`` names the starter that numbered the ranks.
    """

    job: Name | None = None
    rank: Ordinal | None = None
    ranks: Ordinal | None = None
    local_rank: Ordinal | None = None
    host: Name = ""
    task: Name | None = None
    source: Source = "scheduler"

    @property
    def among_others(self) -> bool:
        """Whether the process is one of several ranks, or the evaluator, which has no rank."""
        return self.ranks != 1 if self.rank is not None else self.task is not None


class _Numbers(NamedTuple):
    """The variables of one starter.

    They contain the rank, the number of ranks (``ranks``, or ``or_ranks`` if ``ranks`` is not set), and the local rank.
    """

    source: Source
    rank: str
    ranks: str = ""
    local_rank: str = ""
    wants_ranks: bool = True  # the rank counts only if the number of ranks is set, too: such names are common
    within: str = ""  # a variable that must be set, too; without it the others mean something else
    or_ranks: str = ""


# If the variables of several starters are set, the starter with the most ranks counts: it is the innermost. An example
# is `torchrun` or `mpirun` within a Slurm job, where Slurm numbers only the processes that it started itself. If the
# numbers are equal, the first starter of this list counts.
_STARTERS = (
    _Numbers("user", "TFMEMTOP_RANK", "TFMEMTOP_RANKS", "TFMEMTOP_LOCAL_RANK", wants_ranks=False),
    _Numbers("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    _Numbers("mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
    _Numbers("horovod", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"),
    _Numbers("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    # A batch script has these variables, too, but is not a rank: only a step has a SLURM_STEP_ID.
    _Numbers(
        "slurm",
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_LOCALID",
        within="SLURM_STEP_ID",
        or_ranks="SLURM_NTASKS",
    ),
    _Numbers("pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    _Numbers("pmix", "PMIX_RANK", "TFMEMTOP_RANKS", wants_ranks=False),
    _Numbers("kubernetes", "JOB_COMPLETION_INDEX", "TFMEMTOP_RANKS", wants_ranks=False),
)


def placement(environment: Mapping[str, str], host: str = "") -> Placement | None:
    """Return the place of a process with *environment* on the machine *host*; ``None`` if no variable contains it.

    Values that make no sense, such as a rank that is not below the number of ranks, are ignored.
    """
    found = [*_numbered(environment), *_of_tf_config(environment.get("TF_CONFIG", ""))]
    task = next((one.task for one in found if one.task), None)
    users = [one for one in found if one.source == "user"]
    best = max(users or found, key=lambda one: one.ranks or 0, default=None)
    job = job_of(environment)
    if best is None and job is None:
        return None
    own = bounded_name(environment.get("TFMEMTOP_HOST"))
    named = own or bounded_name(environment.get("SLURMD_NODENAME")) or bounded_name(host) or ""
    if best is None:
        return Placement(job=job, host=named)
    return msgspec.structs.replace(best, job=job, host=named, task=task)


def _numbered(environment: Mapping[str, str]) -> Iterator[Placement]:
    for names in _STARTERS:
        rank = _number(environment.get(names.rank))
        ranks = _number(environment.get(names.ranks, environment.get(names.or_ranks)))
        if rank is None or (ranks is None and names.wants_ranks) or (ranks is not None and rank >= ranks):
            continue
        if names.within and names.within not in environment:
            continue
        local_rank = _number(environment.get(names.local_rank))
        yield Placement(rank=rank, ranks=ranks, local_rank=local_rank, source=names.source)


def job_of(environment: Mapping[str, str]) -> str | None:
    """Return the scheduler's name of the job; for a job of an array ``ARRAY_TASK``, as ``squeue`` writes it."""
    get = environment.get
    if own := bounded_name(get("TFMEMTOP_JOB")):
        return own
    if array := bounded_name(get("SLURM_ARRAY_JOB_ID")):
        task = bounded_name(get("SLURM_ARRAY_TASK_ID"))
        return f"{array}_{task}" if task else array
    for name in ("SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"):
        if job := bounded_name(get(name)):
            return job
    run_id = bounded_name(get("TORCHELASTIC_RUN_ID"))
    return run_id if run_id != "none" else None  # torchrun writes "none" if it has no id


def _of_tf_config(text: str) -> Iterator[Placement]:
    """Yield the task that ``TF_CONFIG`` names. Its rank counts through the cluster: chief, workers, parameter servers.

    An evaluator that is not in the cluster has a task and no rank.
    """
    try:
        parsed = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return
    task, cluster = (parsed.get(key) if isinstance(parsed, dict) else None for key in ("task", "cluster"))
    if not isinstance(task, dict) or not isinstance(cluster, dict):
        return
    kind, index = task.get("type"), _number(str(task.get("index", "")))
    if kind not in _TASKS or index is None:
        return
    sizes = {name: len(hosts) for name in _TASKS if isinstance(hosts := cluster.get(name), (list, dict))}
    name = f"{kind} {index}"
    if kind == "evaluator" and not index < sizes.get(kind, 0):
        yield Placement(task=name, source="tf_config")
    elif index < sizes.get(kind, 0):
        before = sum(sizes.get(other, 0) for other in _TASKS[: _TASKS.index(kind)])
        yield Placement(rank=before + index, ranks=sum(sizes.values()), task=name, source="tf_config")


def _number(text: str | None) -> int | None:
    """Return *text* as a number that a rank may have; ``None`` if it is not one."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 2**31 else None


def bounded_name(text: str | None) -> str | None:
    """Return the printable characters of *text*, at most ``_LONGEST`` of them; ``None`` if there are none."""
    return "".join(c for c in (text or "").strip() if c.isprintable())[:_LONGEST] or None


FIELDS = "jhrnp"
"""The letters that may follow a ``%``: job, host, rank, Slurm's restarts, process. ``%3r`` has three digits: 007."""

_FIELD = re.compile(r"%(\d*)([A-Za-z%])")
_UNFIT = re.compile(r"[^\w.+=@-]")  # characters that are replaced in a part of a file's name
_LONGEST_PART = 64
_SUFFIXES = re.compile(r"(?P<stem>.+?)(?P<suffixes>(?:\.[A-Za-z]\w{0,7}){0,2})")
_MOST_DIGITS = 9
NO_JOB = "nojob"


class RankName(NamedTuple):
    """A file's name, and facts about it for a message to the user.

    ``no_job``: the pattern has ``%j``, and the job is not known. ``no_rank`` is the text that stands in place of a
    rank that is not known; otherwise it is empty. ``added`` is the text that was added to the name, so that no other
    rank and no earlier start of the job uses the same name.
    """

    name: str
    no_job: bool = False
    no_rank: str = ""
    added: str = ""


def check(pattern: str) -> str | None:
    """Return the first field of *pattern* that is not valid; ``None`` if all are.

    A field is not valid if its letter is not in :data:`FIELDS`, or if it has more than one digit.
    """
    return next((found[0] for found in _FIELD.finditer(pattern) if not _is_field(found)), None)


def named(pattern: str, environment: Mapping[str, str], host: str, pid: int) -> RankName:
    """Return the name that *pattern* means for a process with *environment* on *host*; *pid* is that of tfmemtop.

    A rank gets a name of its own even if the pattern has no ``%r``. A job that Slurm has started again gets a new name
    even if the pattern has no ``%n``. ``%p`` does not replace either of them: in every container, the first process has
    the number 1. A field that is not valid (see :func:`check`) is not replaced.
    """
    place = placement(environment, host) or Placement(host=host)
    restarts = environment.get("SLURM_RESTART_COUNT", "")
    restarts = restarts if restarts.isascii() and restarts.isdigit() and len(restarts) <= _MOST_DIGITS else "0"
    rank = _rank(place)
    values = {
        "j": place.job or NO_JOB,
        "h": place.host or host,
        "r": rank or f"p{pid}",
        "n": restarts,
        "p": str(pid),
        "%": "%",
    }
    used = {found[2] for found in _FIELD.finditer(pattern) if _is_field(found)}
    name = _FIELD.sub(lambda found: _value(found, values), pattern)
    added = f"-rank{rank}" if rank and place.among_others and "r" not in used else ""
    if int(restarts) and "n" not in used:
        added += f"-start{int(restarts) + 1}"
    return RankName(
        name=_with(name, added),
        no_job="j" in used and place.job is None,
        no_rank=values["r"] if "r" in used and not rank else "",
        added=added,
    )


def _rank(place: Placement) -> str:
    if place.rank is not None:
        return str(place.rank)
    return (place.task or "").replace(" ", "")


def _is_field(found: re.Match[str]) -> bool:
    return len(found[1]) <= 1 and found[2] in (*FIELDS, "%")


def _value(found: re.Match[str], values: Mapping[str, str]) -> str:
    digits, field = found[1], found[2]
    if not _is_field(found):
        return found[0]
    value = values[field]
    fit = value if field == "%" else _UNFIT.sub("_", value)[:_LONGEST_PART]
    if not fit.strip("."):
        fit = "_" * len(fit)  # ".." would be the parent folder
    return fit.zfill(int(digits)) if digits and fit.isdigit() else fit


def _with(name: str, added: str) -> str:
    """Return *name* with *added* before its suffixes, such as ``.jsonl.gz``."""
    folder, slash, last = name.rpartition("/")
    parts = _SUFFIXES.fullmatch(last)
    return f"{folder}{slash}{parts['stem']}{added}{parts['suffixes']}" if parts else f"{name}{added}"


def naming(named: RankName, name: str) -> list[str]:
    """Return the lines that explain the file's *name*, which was made from a pattern; empty if nothing is unusual."""
    lines = []
    if named.no_job:
        lines.append(f"no job is known here: %j in the file's name became {NO_JOB}")
    if named.no_rank:
        lines.append(
            f"the rank is not known here: %r in the file's name became {named.no_rank}, after tfmemtop's process"
        )
    if named.added:
        field = "%r" if "rank" in named.added else "%n"
        lines.append(
            f"{named.added} was added to the file's name, so that no file is overwritten: {name}; "
            f"{field} in the name chooses its place"
        )
    return lines


_FIELDS = {
    "j": "the job",
    "h": "the host",
    "r": "the rank",
    "n": "how often Slurm has started the job again",
    "p": "the number of tfmemtop's process",
}


def unknown_field(field: str) -> str:
    """Return the error for a name that contains the unknown *field*."""
    known = ", ".join(f"%{letter} ({meaning})" for letter, meaning in _FIELDS.items())
    return f"{field} in a file's name means nothing; known are {known}; write %% for a percent sign"


def rank_of(place: Placement) -> str:
    """Return the rank: ``rank 3 of 64``, or ``rank 3 of 4 (ps 0)`` for a parameter server of ``TF_CONFIG``.

    An evaluator has no rank, so its task is returned.
    """
    if place.rank is None:
        return place.task or ""
    of = f" of {place.ranks}" if place.ranks else ""
    task = f" ({place.task})" if place.task else ""
    return f"rank {place.rank}{of}{task}"


def rank_in_short(place: Placement) -> str:
    """Return the rank in few characters: ``rank 3/64``."""
    if place.rank is None:
        return place.task or ""
    return f"rank {place.rank}" + (f"/{place.ranks}" if place.ranks else "")


def where(place: Placement) -> str:
    """Return rank, job and host: ``rank 3 of 64, job 812, on node2``."""
    parts = [rank_of(place), f"job {place.job}" if place.job else "", f"on {place.host}" if place.host else ""]
    return ", ".join(filter(None, parts))


def of_rank(place: Placement, lines: Sequence[str]) -> str:
    """Return *lines* as one line that begins with their rank."""
    return f"{rank_of(place)}: {'; '.join(lines)}"


def waits_for_script(session: str) -> str:
    """Return the line for a user who leaves the screen of a Slurm step or a container."""
    return (
        f"the script goes on, and this command waits for it, because the step or the container ends with this command; "
        f"tfmemtop attach {session}, in the same place, brings the screen back"
    )
