"""The text of findings about the run itself, and about tfmemtop's own work."""

from tfmemtop.events import OutsideState
from tfmemtop.rules.attached import ReadFromOutside
from tfmemtop.rules.ending import MemoryHeld, MemoryReleasing, RunEnded
from tfmemtop.rules.finding import RuleFailed
from tfmemtop.rules.notices import HookAbsent, Noticed
from tfmemtop.words import notices
from tfmemtop.words.counting import sentence, spoken
from tfmemtop.words.endings import ending, still_held
from tfmemtop.words.failure import describe
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.hook_absence import reason_text
from tfmemtop.words.injection import offer
from tfmemtop.words.injection import sentence as sentence_of_injection
from tfmemtop.words.outside import NOT_DONE, NOT_DONE_WITHIN, NOT_KNOWN, NOT_KNOWN_OF_BEFORE
from tfmemtop.words.outside import sentence as sentence_of

_FINAL = "Showing its final state."


@say.register
def _(found: RunEnded) -> Said:
    after = f"after {spoken(found.took_s)}"
    if found.stopped:
        return Said(f"tfmemtop ended run {found.run} {after}.", figures=_FINAL)
    return Said(f"Run {found.run} {ending(found.how)} {after}.", figures=_FINAL)


@say.register
def _(found: MemoryReleasing) -> Said:
    return Said(f"Run {found.run} has ended.", figures="tfmemtop waits until its GPU memory is free.")


@say.register
def _(found: MemoryHeld) -> Said:
    return Said(
        f"Run {found.run} has ended, but not all of its memory is free.", figures=f"{sentence(still_held(found.held))}."
    )


@say.register
def _(found: Noticed) -> Said:
    return Said(f"{sentence(notices.say(found.notice).text)}.")


@say.register
def _(found: HookAbsent) -> Said:
    why = reason_text(found.why)
    return Said(f"Process {found.pid} uses TensorFlow without the hook: {why}.", figures="It is watched from outside.")


@say.register
def _(found: ReadFromOutside) -> Said:
    if found.told.state is OutsideState.HOOKED:
        return Said(sentence_of(found.told), figures=f"{NOT_KNOWN_OF_BEFORE} {NOT_DONE_WITHIN}")
    text = " ".join([sentence_of(found.told), *([sentence_of_injection(found.injection)] if found.injection else [])])
    more = [] if found.injection else [offer(found.told)]
    figures = " ".join(filter(None, [NOT_KNOWN, NOT_DONE, *more]))
    return Said(text, figures="" if found.blocked or found.told.detail else figures)


@say.register
def _(found: RuleFailed) -> Said:
    return Said(f"One of tfmemtop's own rules, {found.rule}, has failed: {describe(found.error)}.")
