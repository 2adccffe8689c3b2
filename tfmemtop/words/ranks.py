"""The text about jobs, ranks and their files. Pure."""

from collections.abc import Sequence

from tfmemtop.filenames import NO_JOB, Named
from tfmemtop.placement import Placement


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
