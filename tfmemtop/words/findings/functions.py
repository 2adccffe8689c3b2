"""What is said of functions that are traced again and again."""

from tfmemtop.rules.retracing import Retraced
from tfmemtop.words.counting import counted
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.places import line_of

_CODE = (
    "@tf.function(reduce_retracing=True)  # where shapes change; or",
    "@tf.function(input_signature=[tf.TensorSpec([None, 10], tf.float32)])",
    "def step(x): ...",
    "",
    "# a tensor in place of a Python number that changes, which makes a new graph:",
    "step(x, tf.constant(n))",
)


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
            " All models of one program share this function's place in Keras, so that several models made one after "
            "the other count together."
        )
    return Said(
        f"{which} was traced anew in {found.traces} of {counted(found.calls, 'call')} within the last {span}.",
        explanation,
        () if found.of_keras else _CODE,
        "Each tracing builds a graph, which takes far longer than a step and stays in memory.",
    )
