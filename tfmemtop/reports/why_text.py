"""The text of a run's report apart from the verdict and the questions: the run, what was found, what to do. Pure."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tfmemtop.filenames import where
from tfmemtop.findings.ending import ended
from tfmemtop.findings.grouping import Group, alike, group_text
from tfmemtop.findings.limit_texts import amount, options
from tfmemtop.findings.outside_text import NOT_KNOWN, NOT_KNOWN_OF_BEFORE
from tfmemtop.findings.places import alike_gpus, gpus
from tfmemtop.findings.remedy import Action, Remedy, SaidRemedy, said
from tfmemtop.findings.run_review import HeldFinding, RunReview
from tfmemtop.findings.verdict import weighed
from tfmemtop.placement import Placement
from tfmemtop.safe import safe
from tfmemtop.state.program import title
from tfmemtop.suggested import Basis, SuggestedLimit
from tfmemtop.units import format_bytes, spoken

INDENT = "    "


def pasted(words: Iterable[str], width: int) -> list[str]:
    """Return the command of *words*, in lines of at most *width* characters where its words allow it.

    A line ends with a backslash if the next one begins with another word. A line break within a word is kept; the text
    after it is not indented, since a blank there would be part of the word.
    """
    lines = [""]
    for word in map(quoted, words):
        first, *rest = word.split("\n")
        if lines[-1].strip() and len(lines[-1]) + len(first) + len(" " + " \\") > width:
            lines[-1] += " \\"
            lines.append(INDENT)
        lines[-1] += (" " if lines[-1].strip() else "") + first
        lines += rest
    return lines


def quoted(word: str) -> str:
    """Return *word* quoted for a POSIX shell. If it contains characters that are not safe, it is in bash's ``$'…'``."""
    if all(safe(line) == line for line in word.split("\n")):
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isascii() and character.isprintable():
        return character
    if character == "\n":
        return "\\n"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


WHY, TO_DO, FOUND = "Why", "What to do", "Found"
"""Titles of the report's parts."""

_COMMAND = 60  # characters of a command line that are enough to recognise it


def heading(seen: RunReview) -> str:
    """Return the run in one sentence: what it was, how long it took, how it ended, and where it ran."""
    run = seen.state.run
    if run is None:
        return "No script was started in this recording."
    took = (run.ended if run.ended is not None else seen.state.now) - run.started
    kinds = {index: (device.info.name, device.info.total) for index, device in seen.state.devices.items()}
    cards = ", ".join(
        f"{gpus(numbers)} {name} with {format_bytes(total)}" + (" each" if len(numbers) > 1 else "")
        for (name, total), numbers in alike_gpus(kinds.items())
    )
    how = ended(run.ending, running=seen.running, left=run.left)
    named = " ".join(f"{name}={value}" for name, value in run.variables.items())
    where = f"on {cards or 'a machine without a GPU'}"
    if run.outside:
        since = (
            "" if run.hooked is None or run.hooked - run.started < 1 else f" after {spoken(run.hooked - run.started)}"
        )
        inside = f"; the hook was put in{since}" if run.hooked is not None else ""
        unknown = NOT_KNOWN if run.hooked is None else NOT_KNOWN_OF_BEFORE
        read = f"read from outside for {spoken(took)}{inside}"
        return f"Run {run.run}, {_short(title(run))}: {read}, {how}; {where}. {unknown}"
    return f"Run {run.run}, {_short(f'{named} {title(run)}')}: {spoken(took)}, {how}; {where}."


def _short(title: str) -> str:
    text = " ".join(title.split())
    return text if len(text) <= _COMMAND else text[:_COMMAND].rstrip() + " …"


def restarted(run: int, before: Sequence[str]) -> str:
    """Return which session is the kernel's run before *run*, and the command that shows it.

    *before* are the kernel's earlier sessions, the newest last; without any, the text is empty.
    """
    return f"Run {run - 1} of this kernel is session {before[-1]}: tfmemtop why {before[-1]}" if before else ""


def of_a_rank(place: Placement) -> str:
    """Return which rank of its job the run was."""
    return f"It was {where(place)}."


def earlier(run: int, path: str) -> str:
    """Return which runs of recording *path* come before *run*, and the command that shows them; empty if none does."""
    if run <= 1:
        return ""
    which = "Run 1 is" if run == 2 else "Runs 1 and 2 are" if run == 3 else f"Runs 1 to {run - 1} are"
    return f"{which} in this recording too: tfmemtop why {quoted(f'{path}:{run - 1}')}"


@dataclass(frozen=True, slots=True)
class Told:
    """A group of findings as text: ``when`` it held, and a whole ``text`` with what helps."""

    group: Group
    when: str
    text: str


def told(seen: RunReview) -> list[Told]:
    """Return what was found, the most serious first. Findings that are alike on many devices are one group."""
    return [_told(times, seen) for times in alike(weighed(seen), lambda held: held.finding)]


def _told(times: Sequence[HeldFinding], seen: RunReview) -> Told:
    group = Group(tuple(held.finding for held in times))
    first, last = min(held.first for held in times), max(held.last for held in times)
    when = f"From {spoken(first)} to {spoken(last)}" if seen.ceased(last) else f"From {spoken(first)} on"
    if group.first.fatal:
        when = f"At {spoken(first)}"  # the failure is one moment, though the finding holds from then on
    helps = "; ".join(step.elsewhere for step in steps(group))
    return Told(group, when, f"{when}: {group_text(group)}" + (f" What helps: {helps}." if helps else ""))


def steps(group: Group) -> list[SaidRemedy]:
    """Return what can be done about *group* without the screen, best first."""
    return sized(group.remedies, None)


def sized(remedies: Iterable[Remedy], suggested: SuggestedLimit | None) -> list[SaidRemedy]:
    """Return *remedies* as they can be done without the screen, best first.

    Those about a limit contain the limit *suggested* for the run, if there is one that fits.
    """
    return [_sized(said(remedy), remedy.action, suggested) for remedy in remedies if not said(remedy).screen_only]


def _sized(words: SaidRemedy, action: Action, suggested: SuggestedLimit | None) -> SaidRemedy:
    if suggested is None:
        return words
    if action is Action.SET_LIMIT and not suggested.is_guess:
        return SaidRemedy(f"{words.text} of {amount(suggested)}", options=options(suggested))
    # Where the limit was too low, only a suggestion made from the failed request is sure to be higher.
    if action in (Action.RAISE_LIMIT, Action.ENLARGE_CPU_POOL) and suggested.basis is Basis.FAILED_REQUEST:
        return SaidRemedy(f"{words.text}; {amount(suggested)} is a guess", options=options(suggested))
    return words


NO_FINDINGS = "No findings right now."
