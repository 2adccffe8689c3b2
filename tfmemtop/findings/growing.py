"""The cause that what is in use is larger each time, as the recorded windows show. Pure."""

from itertools import pairwise

from tfmemtop.findings.cause import Cause, Key, fitting
from tfmemtop.findings.names import holder_name, operation_name, tensor_text
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.scene import MANY, MOST
from tfmemtop.state.holder_choice import recorded
from tfmemtop.state.holders import Part
from tfmemtop.state.inventory import Inventory
from tfmemtop.state.model import Hooked
from tfmemtop.state.step_course import unpacked
from tfmemtop.units import format_bytes

Shape = tuple[int, ...]


def larger_each_time(stock: Inventory, hooked: Hooked) -> Cause | None:
    """Most of what is in use was made by operations whose results have grown step by step."""
    made: list[list[tuple[str, Shape]]] = []  # by window, in the order of time
    for window in recorded(hooked.windows.get(stock.device)):
        course = unpacked(window)
        kinds = [course.kinds[place] for place in course.holdings]
        made.append([(course.name(kind), tuple(kind.shape or ())) for kind in kinds])
    parts = [(part, first) for part in stock.parts if (first := _first(part, made))]
    size = sum(part.bytes for part, _ in parts)
    if not parts or size < MOST * stock.in_use:
        return None
    part, first = max(parts, key=lambda one: (bool(one[0].python_name), one[0].bytes))
    held = holder_name(part.python_name) if part.python_name else f"What {operation_name(part.operation)} makes"
    sizes = f"from {tensor_text(list(first), None)} to {tensor_text(list(part.shape or ()), None)}"
    whole = f"all that grew so takes {format_bytes(size)} of the {format_bytes(stock.in_use)} in use."
    return Cause(
        Key.GROWN_BY_COPYING if part.python_name else Key.STEP_LARGER,
        fitting(f"{held} grew {sizes}, a little each time; {whole}", f"{held} grew {sizes}; {whole}"),
        part.python_name,
        size,
        len(parts),
        (Action.CONCAT_ON_HOST if part.python_name else Action.BOUND_REQUEST,),
        ("x = tf.concat([x, part], 0)[-1000:]  # no more than is needed",) if part.python_name else (),
    )


def _first(part: Part, made: list[list[tuple[str, Shape]]]) -> Shape | None:
    """Return the first of the shapes that led to that of *part*: each larger than the one before, in one dimension."""
    last = part.shape or ()
    for window in made:
        like = [shape for name, shape in window if name == part.operation and _differ(shape, last) <= 1]
        grew = all(_differ(old, new) <= 1 and old <= new for old, new in pairwise([*like, last]))
        if grew and len(set(like)) >= MANY:
            return like[0]
    return None


def _differ(one: Shape, other: Shape) -> int:
    """Return in how many dimensions two shapes differ; 2 if they have other numbers of them."""
    return sum(old != new for old, new in zip(one, other, strict=True)) if len(one) == len(other) else 2
