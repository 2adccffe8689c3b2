"""The text of findings about functions that are traced again and again."""

from tfmemtop.events import Changed
from tfmemtop.rules.retracing import Retraced
from tfmemtop.words.counting import counted
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.places import line_of

_SHAPES = (
    "@tf.function(reduce_retracing=True)  # where shapes change; or",
    "@tf.function(input_signature=[tf.TensorSpec([None, 10], tf.float32)])",
    "def step(x): ...",
)
_NUMBERS = (
    "# a tensor in place of a Python number that changes, which makes a new graph:",
    "step(x, tf.constant(n))",
)
_OBJECTS = (
    "# an object made once, since each new one makes a new graph:",
    "settings = Settings()",
    "for x in batches:",
    "    step(x, settings)",
)
_ONCE = (
    "step = tf.function(step)  # once, before the loop, not in it",
    "for x in batches:",
    "    step(x)",
)


def code(found: Retraced) -> tuple[str, ...]:
    """Return lines of code to write instead, as far as it is known what differs between the tracings."""
    if found.of_keras:
        return ()
    if found.mostly_anew:
        return _ONCE
    kinds = {_kind(one) for one in found.changed} or {_SHAPES, _NUMBERS}
    blocks = [block for block in (_SHAPES, _NUMBERS, _OBJECTS) if block in kinds]
    return tuple(line for number, block in enumerate(blocks) for line in (*([""] if number else []), *block))


def _kind(one: Changed) -> tuple[str, ...]:
    if "<" in one.before[:1] + one.after[:1]:
        return _OBJECTS
    return _SHAPES if one.after.endswith("]") else _NUMBERS


def change(one: Changed) -> str:
    """Return how an argument changed: ``x: float32[32,10] → [31,10]``, ``n: 3 → 4``."""
    before, after = one.before, one.after
    if not before or not after:
        return f"{one.argument}: {before or 'none'} → {after or 'none'}"
    if before == after:
        return f"{one.argument}: {before} → another {after}"
    dtype, bracket, extents = after.partition("[")
    if bracket and before.startswith(dtype + bracket):
        after = bracket + extents
    return f"{one.argument}: {before} → {after}"


def why(found: Retraced) -> str:
    """Return what differed between the tracings, in a sentence or two; empty if it is not known."""
    if found.mostly_anew:
        return f"In {found.anew} of the {found.traces_so_far} tf.function was called on it anew."
    if not found.changed:
        return ""
    first = found.changed[0]
    often = f" {first.argument} differed in {first.tracings} of {found.traces_so_far}." if first.tracings > 1 else ""
    return f"The newest was traced because of {'; '.join(map(change, found.changed))}.{often}"


@say.register
def _(found: Retraced) -> Said:
    name, where = found.function, line_of(found.defined)
    which = f"Keras's {name} ({where})" if found.of_keras else f"{where}: {name}"
    span = f"{found.span_s:.0f} s" if found.span_s >= 2 else "second"
    explanation = (
        f"{name} has {counted(found.traces_so_far, 'graph')} so far, in {counted(found.calls_so_far, 'call')}. "
        "tf.function builds a new graph for each new shape or type of a tensor, for each new value of a Python "
        "argument, and for each function that tf.function is called on anew, as in a loop. All graphs are kept as long "
        "as the function lives: host memory rises with them, and their constants take the GPU's."
    )
    if found.of_keras:
        explanation += (
            " All models of one script share this function's place in Keras, so that several models made one after "
            "the other count together."
        )
    return Said(
        f"{which} was traced anew in {found.traces} of {counted(found.calls, 'call')} within the last {span}.",
        explanation,
        code(found),
        f"{why(found)} Each tracing builds a graph, which takes far longer than a step and stays in memory.".lstrip(),
    )
