"""The text about putting the hook into a process that runs already."""

from tfmemtop.events import Injection, InjectionState, Outside
from tfmemtop.findings.notice_texts import TextAndRemedy

S = InjectionState

_FIRST = (3, 14)

_START = "start the script as tfmemtop -- COMMAND"

_SAID: dict[InjectionState, tuple[str, str]] = {
    S.ASKED: (
        "its Python was asked to load the hook and has not done so yet: its main thread is in one long "
        "call, or an audit hook of the script forbids it",
        "",
    ),
    S.ARRIVED: ("the hook is in it", ""),
    S.ALREADY: ("the hook is in it already, for another tfmemtop", "tfmemtop ls names that session"),
    S.OLD_PYTHON: (
        "its Python is {detail}; only Python 3.14 and newer lets others run code in it, and tfmemtop uses no debugger",
        _START,
    ),
    S.NOT_PYTHON: ("its program is {detail}, and not a Python interpreter", _START),
    S.OTHER_USER: (
        "it belongs to another user",
        "start tfmemtop as that user; if only root may read it: sysctl kernel.yama.ptrace_scope=0, as root",
    ),
    S.ELSEWHERE: (
        "it sees other files than tfmemtop does, as a process in a container does",
        "install and start tfmemtop in there",
    ),
    S.DISABLED: ("its Python was started or built so that no other program can run code in it", _START),
    S.NOT_ALLOWED: (
        "the kernel does not let tfmemtop write to its memory",
        "the permission to read its memory includes the permission to write to it: see tfmemtop help outside",
    ),
    S.REPLACED: (
        "the script has replaced {detail}, as gevent does, and the hook would call the replacement",
        _START,
    ),
    S.FAILED: ("the hook could not be put into it: {detail}", ""),
}


def say_injection(state: InjectionState, detail: str) -> TextAndRemedy:
    """Return how far the injection has come, or what prevents it, and what helps: two texts without a full stop."""
    text, remedy = _SAID[state]
    return TextAndRemedy(text.format(detail=detail), remedy)


def refusal(pid: int, state: InjectionState, detail: str) -> str:
    """Return why the hook cannot be put into process *pid*, in one line."""
    said = say_injection(state, detail)
    helps = f"; what helps: {said.remedy}" if said.remedy else ""
    outside = f"from outside it is read by: tfmemtop attach {pid}"
    return f"the hook cannot be put into process {pid}: {said.text}{helps}; {outside}"


def sentence(event: Injection) -> str:
    """Return the same as :func:`say_injection`, as one sentence or two."""
    said = say_injection(event.state, event.detail)
    text = (
        f"{said.text[:1].upper()}{said.text[1:]}." if event.state.under_way else f"The hook is not in it: {said.text}."
    )
    return text + (f" What helps: {said.remedy}." if said.remedy else "")


def offer(event: Outside) -> str:
    """Return the offer to put the hook into a process that is read from outside.

    Empty where its Python is too old for that, or TensorFlow cannot be read in it.
    """
    version = tuple(int(part) for part in event.python.split(".") if part.isdigit())
    if not event.state.inside or version < _FIRST:
        return ""
    return f"With the hook more is known: tfmemtop attach {event.pid} --inject puts it into the process."
