"""Jobs, ranks and their files in words. Pure."""

from tfmemtop.filenames import FIELDS, NO_JOB, Named


def naming(named: Named, name: str) -> list[str]:
    """What to tell of the file *name*, which came of a pattern."""
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
            f"{field} in the name says where it shall stand"
        )
    return lines


def unknown_field(field: str) -> str:
    """What is wrong with a name that has *field*."""
    known = ", ".join(f"%{letter} ({meaning})" for letter, meaning in FIELDS.items())
    return f"{field} in a file's name means nothing; known are {known}; write %% for a percent sign"
