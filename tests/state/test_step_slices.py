"""The slices in which a step is drawn."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import Moment, slices


def course(*levels: tuple[int, int]) -> list[Moment]:
    """A step that has so many bytes in use from each of these times on, in µs."""
    return [Moment(number - 1, at, {Kind.TENSORS: size}, size) for number, (at, size) in enumerate(levels)]


def test_a_slice_is_as_high_as_what_was_in_use_at_its_start() -> None:
    found = slices(course((0, 0), (1, 100), (74, 5), (100, 5)), 4)
    assert [one.ends[-1] for one in found] == [100, 100, 100, 5]
    # The cursor goes to the highest moment among those of the slice itself.
    assert [(one.event, one.total) for one in found] == [(0, 100), (0, 100), (1, 5), (2, 5)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 100)), min_size=1, max_size=12), st.integers(1, 7))
def test_each_slice_is_as_high_as_the_most_that_was_in_use_in_it(steps: list[tuple[int, int]], count: int) -> None:
    times = list(accumulate(wait for wait, _ in steps))
    moments = course(*zip(times, (size for _, size in steps), strict=True))
    whole = max(1, times[-1] - times[0])
    ends = [times[0] + whole * (number + 1) / count for number in range(count)]
    for start, end, one in zip([-1, *ends], ends, slices(moments, count), strict=False):
        at_start = [moment.total for moment in moments if moment.at_us <= start][-1:]
        assert one.ends[-1] == max(at_start + [moment.total for moment in moments if start < moment.at_us <= end])
