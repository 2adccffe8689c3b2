"""The text of findings about XLA's buffers, and about reports that are missing."""

from tfmemtop.events import XlaMissing
from tfmemtop.rules.xla import Nameless, ReportMissing
from tfmemtop.units import format_bytes
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.places import place_name

_WHY = {
    XlaMissing.UNREAD: "its form is not known (looked for: {detail})",
    XlaMissing.TOO_LARGE: "it is too large to be read",
    XlaMissing.USERS_FOLDER: "XLA_FLAGS already has XLA write elsewhere ({detail}), and tfmemtop leaves that as it is",
    XlaMissing.USERS_FILE: "XLA_FLAGS names a file of flags ({detail}), which tfmemtop leaves as it is",
    XlaMissing.SCRIPTS_FLAGS: "the script itself sets XLA_FLAGS, which replaces the flags that ask for the report",
    XlaMissing.NO_FOLDER: "there is no folder for it ({detail})",
    XlaMissing.TOO_MANY: "only the first {detail} that XLA compiled were read",
    XlaMissing.TOO_MUCH: "XLA wrote more than {detail} bytes before they could be read, and the oldest were deleted",
}


def missing_text(why: XlaMissing, detail: str) -> str:
    """Return why there is no report, as one clause without a full stop."""
    return _WHY[why].format(detail=detail)


@say.register
def _(found: Nameless) -> Said:
    where = place_name(found.place)
    return Said(
        f"{where}: {format_bytes(found.bytes)} of the {format_bytes(found.peak)} at a step's peak are one allocation "
        "without a name.",
        "TensorFlow names no operation for it. For a function compiled with XLA, as Keras does on a GPU by default, "
        "that is XLA's temporary buffer. XLA can write down what lies in it when it compiles. Steps of such a run "
        "were 9 to 14 % slower on an H100.",
    )


@say.register
def _(found: ReportMissing) -> Said:
    of = f" of {found.cluster}" if found.cluster else ""
    return Said(f"There is no report of XLA's buffers{of}: {missing_text(found.why, found.detail)}.")
