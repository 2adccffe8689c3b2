"""The report that explains a recorded run: as text, with the most important first, and as JSON."""

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tfmemtop.findings.cause import Cause
from tfmemtop.findings.finding import Group, alike, group_text
from tfmemtop.findings.missing import unrecorded
from tfmemtop.findings.names import alike_gpus, gpus, key_of
from tfmemtop.findings.proposed_limit import amount, options, suggested_limit
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.review import WIDTH, RunReview, verdict, weighed
from tfmemtop.findings.rules.attached import NOT_KNOWN
from tfmemtop.findings.rules.ending import ended
from tfmemtop.findings.rules.notices import say
from tfmemtop.findings.run_devices import used_cards
from tfmemtop.limits import SuggestedLimit
from tfmemtop.placement import where
from tfmemtop.reports.answers import answers, arising
from tfmemtop.reports.holders import WHO_HOLDS, in_short, not_recorded, top_rows
from tfmemtop.reports.holders import to_json as to_json_holders
from tfmemtop.reports.settings import kept_options
from tfmemtop.safe import safe
from tfmemtop.state.holders import By, standing
from tfmemtop.state.model import RunState
from tfmemtop.state.program import short, title
from tfmemtop.state.windows import Chosen, chosen
from tfmemtop.units import format_bytes, sentence, spoken

ROWS = 3
"""How many rows of the table of holders are shown."""

EVIDENCE_LINES, REMEDIES = 3, 2

_TITLES = 24  # columns
_WITHOUT_TENSORFLOW = "TensorFlow made no device in it: tfmemtop help frameworks tells what is known of such a run."


def page(seen: RunReview, path: str, asked: int | None = None, *, whole: bool = False) -> list[str]:
    """Return the report on a run of the recording *path*, as lines of text: the verdict, its evidence, what to do.

    *path* is a file or a session's name, as the user would type it; *asked* is the run that the user asked for.

    The five questions have a line each; with *whole* all findings follow, and whole answers. Commands and code are not
    indented, so that they can be pasted.
    """
    found = verdict(seen)
    assert found is not None
    parts: list[list[str]] = [_wrap(found.text), [*_about(seen, path)]]
    if evidence := _evidence(found):
        parts.append(evidence)
    parts += _to_do(seen, found)
    told = [line for each in answers(seen) for line in _wrap(each.line, f"{each.question.text:<{_TITLES}}")]
    parts.append(told or _wrap(_WITHOUT_TENSORFLOW))
    if whole:
        parts += _whole(seen, found)
    else:
        name = path if asked is None else f"{path}:{asked}"
        parts.append([f"More: tfmemtop why --long {pasted([name], WIDTH)[0]}"])
    return [line for number, part in enumerate(parts) for line in ([""] * bool(number) + part)]


def _evidence(found: Cause) -> list[str]:
    """Return the sentences of the evidence for which there is room, the first ones before others."""
    told: list[str] = []
    for sentences in filter(None, found.evidence):
        if len(_wrap(" ".join([*told, sentences]))) <= EVIDENCE_LINES:
            told.append(sentences)
    return _wrap(" ".join(told)) if told else []


def _to_do(seen: RunReview, found: Cause) -> Iterator[list[str]]:
    """Yield the part about what to do: the remedies in words, then the command or the code of the first."""
    steps = sized(found.remedies, suggested_limit(seen.state))
    step = _step(steps, found)
    shown = [each for place, each in enumerate(steps) if place < REMEDIES or each is step]
    if shown:
        yield ["What to do", *(line for each in shown for line in _wrap(each.elsewhere, "  * "))]
    if found.code:
        yield [*found.code]
    elif command := command_to_paste(seen, found):
        yield command


def _step(steps: Sequence[Remedy], found: Cause) -> Remedy | None:
    """Return the first of *steps* that is a whole command; ``None`` if there is code to paste instead."""
    return next((step for step in steps if step.complete), None) if not found.code else None


def command_to_paste(seen: RunReview, found: Cause) -> list[str]:
    """Return the command that does the first remedy that is one, as lines of text; empty if there is none."""
    run, step = seen.state.run, _step(sized(found.remedies, suggested_limit(seen.state)), found)
    return _command(step, run) if step is not None and run is not None else []


def _command(step: Remedy, run: RunState) -> list[str]:
    name = [step.name] if step.name else []
    if run.kernel is not None:  # only Jupyter starts a kernel; a named command runs the script itself
        return pasted(["tfmemtop", "kernel", "install", *step.options], WIDTH) if not step.name else []
    named = [f"{name}={value}" for name, value in run.variables.items()]
    replaced = ("--memory-limit", "--cpu-pool") if step.name else step.options  # fit finds the limit itself
    options = [*kept_options(run.settings, replaced), *step.options]
    return pasted([*(["env", *named] if named else []), "tfmemtop", *name, *options, "--", *run.argv], WIDTH)


def _whole(seen: RunReview, found: Cause) -> Iterator[list[str]]:
    """Yield all findings, the holders, and the answers to the questions that the run raises."""
    if found.explanation:
        yield ["Why", *_paragraphs([found.explanation])]
    groups = list(found_groups(seen))
    if groups:
        yield ["Found", *(line for _, text in groups for line in _wrap(text, "  * "))]
    if holders := chosen(seen.state):
        yield _who_holds(holders[0])
    elif groups and groups[0][0].first.fatal:
        yield [WHO_HOLDS, *_paragraphs([not_recorded(unrecorded(seen.state))])]
    asked = arising(seen)
    for answer in answers(seen):
        if answer.question in asked:
            yield [*_wrap(answer.question.value), *_paragraphs((answer.line, *answer.paragraphs))]
            if answer.command:
                yield pasted(answer.command, WIDTH)
            if answer.code:
                yield [*answer.code]


def _about(seen: RunReview, path: str) -> Iterator[str]:
    yield from _wrap(heading(seen))
    session, run = seen.state.session, seen.state.run
    if session and session.placement and session.placement.among_others:
        yield from _wrap(safe(f"It was {where(session.placement)}."))
    if run is None:
        return
    others = earlier(run.run, path) if run.kernel is None else restarted(run.run, run.earlier)
    if others:
        yield others
    if stopped := seen.state.notices.get("recording"):
        yield from _wrap(f"{sentence(say(stopped).text)}.")


def _who_holds(one: Chosen) -> list[str]:
    """Return what holds most at the peak of a step: a paragraph, and the largest rows."""
    found = standing(one.window, one.hooked, By.LAYER)
    return [WHO_HOLDS, *_paragraphs([in_short(one, found)]), *top_rows(one, ROWS)]


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in _wrap(text, "  ")]


def _wrap(text: str, first: str = "") -> list[str]:
    plain = safe(" ".join(text.split()))  # before the text's width is measured
    rest = " " * len(first)
    return textwrap.wrap(
        plain, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def to_json(seen: RunReview) -> dict[str, Any]:
    """Return the report as keys and values: run, verdict, every finding, suggested limit, phases, holders."""
    found, suggested, run = verdict(seen), suggested_limit(seen.state), seen.state.run
    assert found is not None and run is not None
    return {
        "run": run.run,
        "placement": seen.state.session.placement if seen.state.session else None,
        "verdict": {
            "cause": str(found.key),
            "holder": found.holder or None,
            "bytes": found.bytes,
            "count": found.count,
            "remedy": "; ".join(step.elsewhere for step in sized(found.remedies, suggested)) or None,
            "text": found.text,
        },
        "findings": [
            {
                "key": key_of(type(held.finding)),
                "severity": held.finding.severity.name.lower(),
                "text": held.finding.said.text,
            }
            for held in weighed(seen)
        ],
        "limit": _limit(suggested),
        "phases": [
            {name: getattr(phase, name) for name in ("name", "epoch", "began", "ended", "peaks")}
            for phase in run.phases.values()
        ],
        "holders": to_json_holders(holders[0], By.LAYER) if (holders := chosen(seen.state)) else None,
    }


def _limit(suggested: SuggestedLimit | None) -> dict[str, Any] | None:
    if suggested is None:
        return None
    return {"bytes": suggested.size, "growth": suggested.growth, "basis": suggested.basis.value}


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
            lines.append("    ")
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


def heading(seen: RunReview) -> str:
    """Return the run in one sentence: what it was, how long it took, how it ended, and where it ran."""
    run = seen.state.run
    if run is None:
        return "No script was started in this recording."
    took = (run.ended if run.ended is not None else seen.state.now) - run.started
    used, devices = used_cards(seen.state), seen.state.devices
    kinds = {at: (devices[at].info.name, devices[at].info.total) for at in sorted(used or devices)}
    cards = ", ".join(
        f"{gpus(numbers)} ({name}, {format_bytes(total)}{' each' if len(numbers) > 1 else ''})"
        for (name, total), numbers in alike_gpus(kinds.items())
    )
    how = ended(run.ending, running=seen.running, left=run.left)
    named = " ".join(f"{name}={value}" for name, value in run.variables.items())
    where = f"{'on' if used or not cards else 'the machine has'} {cards or 'a machine without a GPU'}"
    if run.outside:
        read = f"read from outside for {spoken(took)}"
        return f"Run {run.run}, {short(title(run))}: {read}, {how}; {where}. {NOT_KNOWN}"
    return f"Run {run.run}, {short(f'{named} {title(run)}')}: {spoken(took)}, {how}; {where}."


def restarted(run: int, before: Sequence[str]) -> str:
    """Return which session is the kernel's run before *run*, and the command that shows it.

    *before* are the kernel's earlier sessions, the newest last; without any, the text is empty.
    """
    return f"Run {run - 1} of this kernel is session {before[-1]}: tfmemtop why {before[-1]}" if before else ""


def earlier(run: int, path: str) -> str:
    """Return which runs of recording *path* come before *run*, and the command that shows them; empty if none does."""
    if run <= 1:
        return ""
    which = "Run 1 is" if run == 2 else "Runs 1 and 2 are" if run == 3 else f"Runs 1 to {run - 1} are"
    return f"{which} in this recording too: tfmemtop why {quoted(f'{path}:{run - 1}')}"


def found_groups(seen: RunReview) -> Iterator[tuple[Group, str]]:
    """Yield each group of findings that are alike, the most serious first, and its text: when it held, what helps."""
    for times in alike(weighed(seen), lambda held: held.finding):
        group = Group(tuple(held.finding for held in times))
        first, last = min(held.first for held in times), max(held.last for held in times)
        when = f"From {spoken(first)} to {spoken(last)}" if seen.ceased(last) else f"From {spoken(first)} on"
        if group.first.fatal:
            when = f"At {spoken(first)}"  # the failure is one moment, though the finding holds from then on
        helps = "; ".join(step.elsewhere for step in sized(group.remedies, None))
        yield group, f"{when}: {group_text(group)}" + (f" What helps: {helps}." if helps else "")


def sized(remedies: Iterable[Remedy], suggested: SuggestedLimit | None) -> list[Remedy]:
    """Return *remedies* as they can be done without the screen, best first.

    Those about a limit contain the limit *suggested* for the run, if there is one that fits.
    """
    return [_sized(remedy, suggested) for remedy in remedies if not remedy.screen_only]


def _sized(remedy: Remedy, suggested: SuggestedLimit | None) -> Remedy:
    if suggested is not None and remedy is Action.SET_LIMIT and not suggested.is_guess:
        return Remedy(f"{remedy.text} of {amount(suggested)}", options=options(suggested))
    return remedy
