"""Names of files that differ by rank: `%j` and the like in a name that the user gives. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfmemtop.placement import Placement, placement

FIELDS = "jhrnp"
"""The letters that may follow a ``%``: job, host, rank, Slurm's restarts, process. ``%3r`` has three digits: 007."""

_FIELD = re.compile(r"%(\d*)([A-Za-z%])")
_UNFIT = re.compile(r"[^\w.+=@-]")  # characters that are replaced in a part of a file's name
_LONGEST = 64
_SUFFIXES = re.compile(r"(?P<stem>.+?)(?P<suffixes>(?:\.[A-Za-z]\w{0,7}){0,2})")
_MOST_DIGITS = 9
NO_JOB = "nojob"


class Named(NamedTuple):
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


def named(pattern: str, environment: Mapping[str, str], host: str, pid: int) -> Named:
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
    return Named(
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
    fit = value if field == "%" else _UNFIT.sub("_", value)[:_LONGEST]
    if not fit.strip("."):
        fit = "_" * len(fit)  # ".." would be the parent folder
    return fit.zfill(int(digits)) if digits and fit.isdigit() else fit


def _with(name: str, added: str) -> str:
    """Return *name* with *added* before its suffixes, such as ``.jsonl.gz``."""
    folder, slash, last = name.rpartition("/")
    parts = _SUFFIXES.fullmatch(last)
    return f"{folder}{slash}{parts['stem']}{added}{parts['suffixes']}" if parts else f"{name}{added}"


def naming(named: Named, name: str) -> list[str]:
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
