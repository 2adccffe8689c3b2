"""The values in a buffer of XLA add up to the buffer, at its peak and over its schedule."""

from itertools import pairwise

import pytest

from tests.xla.dumps import KERAS, LOOP, cluster
from tfmemtop.events import XlaCluster, XlaValue
from tfmemtop.state.xla_views import XlaPart, saved_by_reuse, xla_course, xla_rows

SMALL = XlaCluster(
    t=0.0,
    pid=7,
    name="f",
    temporary=1000,
    schedule=10,
    peak=900,
    peak_at=5,
    others=100,
    unshared=1700,
    course=[400, 400, 900, 300, 300],
    values=[
        XlaValue("dot.1", "a/MatMul", "f32[100]", 0, 400, 0, 6),
        XlaValue("add.1", "", "f32[100]", 400, 400, 4, 5),
        XlaValue("add.2", "a/Add", "f32[50]", 500, 200, 6, 9),
    ],
)


def test_rows_and_what_is_left_over_add_up_to_the_buffer() -> None:
    rows = xla_rows(SMALL)
    assert [(row.part, row.operation, row.bytes, row.count, row.shared) for row in rows] == [
        (XlaPart.OPERATION, "a/MatMul", 400, 1, 0),
        (XlaPart.OPERATION, "add.1", 400, 1, 200),  # later, a/Add is in half of it
        (XlaPart.OTHERS, "", 100, 0, 0),
        (XlaPart.SPARE, "", 100, 0, 0),
    ]
    assert saved_by_reuse(SMALL) == 700


def test_the_course_names_who_stands_where_most_is_needed() -> None:
    course = xla_course(SMALL)
    assert [(moment.begin, moment.needed) for moment in course] == [(0, 400), (2, 400), (4, 900), (6, 600), (8, 300)]
    assert course[0].by_operation == {"a/MatMul": 400}
    assert course[2].by_operation == {"a/MatMul": 400, "add.1": 400}
    assert course[4].by_operation == {"a/Add": 200}


@pytest.mark.parametrize("name", [KERAS, LOOP])
def test_of_a_real_report(name: str) -> None:
    of = cluster(name)
    rows, course = xla_rows(of), xla_course(of)
    assert sum(row.bytes for row in rows) == of.temporary
    assert all(row.shared <= row.bytes for row in rows)
    named = [row for row in rows if row.part is XlaPart.OPERATION]
    assert all(one.bytes >= following.bytes for one, following in pairwise(named))
    assert sum(row.bytes for row in named) >= 0.99 * of.temporary
    assert [moment.needed for moment in course] == of.course
    assert all(sum(moment.by_operation.values()) <= moment.needed for moment in course)
    highest = max(course, key=lambda moment: sum(moment.by_operation.values()))
    assert highest.by_operation == {row.operation: row.bytes for row in named}


def test_of_nothing() -> None:
    empty = XlaCluster(t=0.0, pid=7, name="")
    assert xla_rows(empty) == [] and xla_course(empty) == [] and saved_by_reuse(empty) == 0
