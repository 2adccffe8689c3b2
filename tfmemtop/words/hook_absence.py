"""The text about why the hook is not inside a process, and what helps."""

from tfmemtop.events import Absence, HookAbsence

_REASONS = {
    Absence.ISOLATED: "Python was started with -I, which ignores PYTHONPATH",
    Absence.IGNORES_ENVIRONMENT: "Python was started with -E, which ignores PYTHONPATH",
    Absence.NO_SITE: "Python was started with -S, which skips sitecustomize",
    Absence.OTHER_PROGRAM: "it runs in {program}, which loads no sitecustomize",
    Absence.ENVIRONMENT_CLEANED: "its environment was cleaned: PYTHONPATH does not lead to the hook",
    Absence.UNREADABLE: "the process belongs to another user and cannot be read",
    Absence.OTHER_SESSION: "another session of tfmemtop watches it: {session}",
    Absence.UNEXPLAINED: "the hook did not report, and the reason cannot be seen from outside",
}

_REMEDIES = {
    Absence.ISOLATED: "Start Python without -I; -P or -s also keep out files of the script's folder.",
    Absence.IGNORES_ENVIRONMENT: "Start Python without -E, so that it reads PYTHONPATH.",
    Absence.NO_SITE: "Start Python without -S, so that it loads the site module.",
    Absence.OTHER_PROGRAM: "Start the script with a Python interpreter of its own instead of a bundle.",
    Absence.ENVIRONMENT_CLEANED: "Start the process with the PYTHONPATH and the TFMEMTOP_ variables of its parent, "
    "which env -i removes.",
    Absence.UNREADABLE: "Start tfmemtop as the user that the process belongs to.",
    Absence.OTHER_SESSION: "See it there: tfmemtop attach {session}.",
    Absence.UNEXPLAINED: "Start the process in an ordinary Python, with the PYTHONPATH that tfmemtop gives it.",
}


def reason_text(absence: HookAbsence) -> str:
    """Return why the hook is not inside, as one clause without a full stop."""
    return _REASONS[absence.reason].format(program=absence.program or "another program", session=absence.session)


def remedy_text(absence: HookAbsence) -> str:
    """Return what helps, as one sentence."""
    return _REMEDIES[absence.reason].format(session=absence.session)
