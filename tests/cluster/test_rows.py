"""Which rows are reported as wrong, on both sides of each threshold, and in which order they stand."""

from collections.abc import Sequence

import pytest

from tests.cluster.exporters import GIB
from tfmemtop.cluster.answers import GONE_S, Rows, remark
from tfmemtop.cluster.client import Sample
from tfmemtop.cluster.rows import ClusterRow, Kind, Silence
from tfmemtop.ui.cluster_app import matching


def figure(means: str, value: float, rank: str = "0", **labels: str) -> Sample:
    """Return a figure of a rank of job 42, which is on a host of its own."""
    own = {"instance": f"n{rank}:9", "host": f"n{rank}", "uuid": f"GPU-{rank}"}
    if means not in CARD:
        own |= {"device": "GPU:0", "run": "1", "job": "42", "rank": rank}
    return Sample({**own, "means": means, **labels}, (0.0, str(value)))


CARD = "used", "busy", "total", "info"


def take(rows: Rows, now: float, **figures: list[Sample]) -> tuple[ClusterRow, ...]:
    """Store *figures* by what they mean, at the time *now*, and return the rows."""
    rows.take(figures, [one for found in figures.values() for one in found], now)
    return rows.rows()


def cluster(*in_use: float) -> Rows:
    """Return a cluster with a rank for each size of *in_use* (bytes), with a limit of 10 GiB on a card of 12 GiB."""
    made = Rows()
    sizes = {str(rank): size for rank, size in enumerate(in_use)}
    take(
        made,
        1,
        in_use=[figure("in_use", size, rank) for rank, size in sizes.items()],
        limit=[figure("limit", 10 * GIB, rank) for rank in sizes],
        total=[figure("total", 12 * GIB, rank) for rank in sizes],
    )
    return made


def wrongs(rows: Sequence[ClusterRow]) -> dict[str, str]:
    """Return what is wrong with each rank, in the order of the table."""
    return {row.rank: row.wrong for row in rows}


def count(rows: Sequence[ClusterRow]) -> int:
    """Return the number of rows with a problem."""
    return sum(row.worst < Kind.GONE for row in rows)


@pytest.mark.parametrize(("share", "said"), [(0.949, ""), (0.951, "full soon 95%")])
def test_nearly_at_the_limit(share: float, said: str) -> None:
    assert wrongs(cluster(share * 10 * GIB).rows()) == {"0": said}


@pytest.mark.parametrize(("third", "said"), [(5.24, ""), (5.3, "outlier +307.2M"), (4.7, "outlier -307.2M")])
def test_a_rank_that_differs_from_the_median(third: float, said: str) -> None:
    assert wrongs(cluster(5 * GIB, 5 * GIB, third * GIB).rows())["2"] == said


def test_what_ranks_usually_differ_by_makes_no_outlier() -> None:
    rows = cluster(4 * GIB, 4.5 * GIB, 5 * GIB, 5.5 * GIB, 6 * GIB, 8 * GIB).rows()
    assert {rank: said for rank, said in wrongs(rows).items() if said} == {"5": "outlier +2.8G"}


def test_two_ranks_do_not_tell_who_is_the_outlier() -> None:
    assert set(wrongs(cluster(5 * GIB, 9 * GIB).rows()).values()) == {""}


@pytest.mark.parametrize(
    ("paces", "said"),
    [
        ((2.6, 2.6, 2.48, 2.6), {}),
        ((2.6, 2.6, 2.13, 2.6), {"2": "18% slower"}),
        ((2.6, 2.6, 0.0, 2.6), {"2": "100% slower"}),
        ((2.0, 2.4, 2.8, 3.2), {}),  # they differ that much anyway
        ((2.6, 2.6, 3.5, 2.6), {}),  # a faster rank is fine
        ((2.6, 1.0), {}),
    ],
)
def test_a_rank_that_is_slower_than_the_median(paces: tuple[float, ...], said: dict[str, str]) -> None:
    made = cluster(*[5 * GIB] * len(paces))
    rows = take(made, 2, pace=[figure("pace", pace, str(rank)) for rank, pace in enumerate(paces)])
    assert {rank: short for rank, short in wrongs(rows).items() if short} == said
    if said.get("2") == "18% slower":
        told = rows[0].wrongs[0].sentence
        assert "2.1 steps a second in the last 00:10:00" in told and "job 42 is 2.6" in told


def test_what_is_wrong_comes_first_in_the_order_of_what_matters() -> None:
    rows = take(
        cluster(4.9 * GIB, 5 * GIB, 9.9 * GIB, 5 * GIB, 7 * GIB, 5 * GIB),
        2,
        finding=[
            figure("finding", 1, "1", key="leak", severity="warning"),
            figure("finding", 1, "3", key="full_but_idle", severity="warning"),
            figure("finding", 1, "5", key="cached_but_idle", severity="info"),
        ],
    )
    assert list(wrongs(rows)) == ["2", "1", "3", "4", "0", "5"]
    assert count(rows) == 4


def test_what_is_only_information_is_not_wrong() -> None:
    """A rank on the CPU reports that it has no driver."""
    made = cluster(5 * GIB, 5 * GIB)
    rows = take(made, 2, finding=[figure("finding", 1, "1", key="notice_no_driver", severity="info")])
    assert (wrongs(rows), count(rows)) == ({"0": "", "1": ""}, 0)
    assert "no driver" in remark(rows[1].remarks[0])
    rows = take(made, 2, finding=[figure("finding", 1, "1", key="notice_gpu_lost", severity="warning")])
    assert wrongs(rows) == {"1": "gpu lost", "0": ""}


def test_silence_is_told_and_is_not_health() -> None:
    made = cluster(5 * GIB, 5 * GIB)
    assert count(made.rows()) == 0
    take(made, 20, in_use=[figure("in_use", 5 * GIB, "0")])
    silent = take(made, 21, down=[figure("down", 0, "1", job="tfmemtop")])[0]
    assert (silent.rank, silent.in_use, silent.silence) == ("1", 5 * GIB, Silence.DOWN)
    assert silent.wrong == "down 00:00:20"
    assert "has not answered Prometheus for 00:00:20" in silent.wrongs[0].sentence
    # As soon as the target answers again, nothing is reported as wrong.
    assert count(take(made, 30, down=[], in_use=[figure("in_use", 5 * GIB, rank) for rank in "01"])) == 0


def test_a_gpu_without_a_rank_is_down_with_the_target_of_its_host() -> None:
    made = Rows()
    take(made, 1, in_use=[], used=[figure("used", 1, "7")])
    down = Sample({"means": "down", "instance": "n7:9", "job": "tfmemtop"}, (0.0, "0"))
    (row,) = take(made, 20, used=[], down=[down])
    assert (row.uuid, row.silence) == ("GPU-7", Silence.DOWN)


def test_a_run_that_has_ended_is_no_silence_unless_it_failed() -> None:
    made = cluster(5 * GIB, 5 * GIB)
    made.rows()
    rows = take(
        made,
        60,
        in_use=[],
        ended=[figure("ended", 0, rank) for rank in "01"],
        finding=[figure("finding", 1, "1", key="run_ended", severity="error")],
    )
    assert wrongs(rows) == {"1": "run ended, ended", "0": "ended"}
    assert count(rows) == 1


def test_a_row_that_is_no_target_any_more_is_kept_for_a_while() -> None:
    made = cluster(5 * GIB, 5 * GIB)
    made.rows()
    left = [figure("in_use", 5 * GIB, "0")]
    assert wrongs(take(made, 60, in_use=left))["1"] == "gone 00:00:59"
    assert list(wrongs(take(made, 60 + GONE_S, in_use=left))) == ["0"]


def test_a_job_that_is_gone_as_a_whole_has_probably_ended() -> None:
    made = cluster(5 * GIB, 5 * GIB)
    made.rows()
    partly = take(made, 60, in_use=[figure("in_use", 5 * GIB, "0")])
    wholly = take(made, 70, in_use=[])
    assert (count(partly), count(wholly)) == (1, 0)
    assert wrongs(wholly) == {"1": "gone 00:01:09", "0": "gone 00:00:10"}
    assert "Another rank of job 42" in partly[0].wrongs[0].sentence
    assert "all have ended" in wholly[0].wrongs[0].sentence


def test_a_rank_without_tensorflow_is_no_rank_that_is_missing() -> None:
    made = cluster(5 * GIB)
    run = figure("unread", 1, "1", uuid="", device="", user="ada")
    assert wrongs(take(made, 1, unread=[run])) == {"1": "no TensorFlow", "0": ""}
    # Once the rank uses TensorFlow, its row is like any other. Its former row is not reported as gone.
    figures = [figure("in_use", 5 * GIB, rank) for rank in "01"]
    assert wrongs(take(made, 5, in_use=figures, unread=[])) == {"0": "", "1": ""}
    # At the end of a rank its figures disappear first. It must not be shown as a rank without TensorFlow then.
    assert wrongs(take(made, 10, in_use=figures[:1], unread=[run])) == {"1": "gone 00:00:05", "0": ""}
    ended = [figure("ended", 0, "1", uuid="", device="")]
    assert wrongs(take(made, 11, ended=ended, unread=[])) == {"1": "ended", "0": ""}


@pytest.mark.parametrize(("tensorflow", "said"), [("", "no TensorFlow"), ("2.21.0", "memory not read")])
def test_a_rank_has_some_minutes_to_import(tensorflow: str, said: str) -> None:
    made = Rows()
    place = {"uuid": "", "device": ""}
    run = figure("unread", 1, user="ada", tensorflow=tensorflow, **place)
    rows = take(made, 1010, in_use=[], unread=[run], starting=[figure("starting", 1000, **place)])
    assert (wrongs(rows), count(rows)) == ({"0": ""}, 0)
    assert wrongs(take(made, 1310, unread=[run], starting=[])) == {"0": said}


def test_old_figures_are_told_as_such() -> None:
    (row,) = take(cluster(9.9 * GIB), 2, old=[figure("old", 300)])
    assert [wrong.kind for wrong in row.wrongs] == [Kind.SILENT]
    assert row.wrong == "old 00:05:00"


def test_labels_that_prometheus_renamed_are_understood() -> None:
    own = {"host": "n0", "uuid": "u", "device": "GPU:0", "run": "1", "instance": "n0:9", "means": "in_use"}
    renamed = {**own, "job": "tfmemtop", "exported_job": "42", "exported_rank": "3"}
    (row,) = take(Rows(), 1, in_use=[Sample(renamed, (0.0, "1"))])
    assert (row.job, row.rank) == ("42", "3")


# The rows of the cluster's table: which of them a filter keeps.


ROWS = (
    ClusterRow("n1:9", "Node1", "GPU-1", job="Train", rank="Worker-1", user="Ada"),
    ClusterRow("n2:9", "Node2", "GPU-2", job="Training", rank="Worker-12", user="Grace"),
)


@pytest.mark.parametrize(
    ("wanted", "hosts"),
    [
        ("job:Train", ["Node1"]),
        ("JOB:TRAIN", ["Node1"]),
        ("rank:Worker-12", ["Node2"]),
        ("rank:worker", []),
        ("TRAINING node2", ["Node2"]),
    ],
)
def test_a_filter_matches_in_any_case(wanted: str, hosts: list[str]) -> None:
    assert [row.host for row in matching(ROWS, wanted)] == hosts
