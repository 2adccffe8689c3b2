"""Which rows are reported as wrong, on both sides of each threshold, and in which order they stand."""

import msgspec
import pytest

from tests.cluster.exporters import GIB
from tfmemtop.cluster.answers import Labels, Series
from tfmemtop.cluster.judge import Judged, Kind, Overview, overview
from tfmemtop.cluster.overview import GONE_S, Cluster, ClusterRow, Silence
from tfmemtop.cluster.queries import STARTING_S, Lane
from tfmemtop.cluster.text import at_length, in_short, remark
from tfmemtop.ui.panels.cluster_rows import matching

MIB = 2**20


def figure(name: str, value: float, rank: str = "0", means: str = "", **labels: str) -> Series:
    """Return a figure of a rank of job 42, which is on a host of its own."""
    own = {"instance": f"n{rank}:9", "host": f"n{rank}", "uuid": f"GPU-{rank}"}
    if not name.startswith("tfmemtop_device"):
        own |= {"device": "GPU:0", "run": "1", "job": "42", "rank": rank}
    return Series(Labels(name=name, means=means, **{**own, **labels}), (0.0, str(value)))


def cluster(*in_use: float) -> Cluster:
    """Return a cluster with a rank for each size of *in_use* (bytes), with a limit of 10 GiB on a card of 12 GiB."""
    made = Cluster()
    ranks = [str(rank) for rank in range(len(in_use))]
    made.take(Lane.FIGURES, [figure("tfmemtop_in_use_high_bytes", s, r) for r, s in zip(ranks, in_use, strict=True)], 1)
    made.take(
        Lane.FIXED,
        [
            *(figure("tfmemtop_limit_bytes", 10 * GIB, rank) for rank in ranks),
            *(figure("tfmemtop_device_memory_total_bytes", 12 * GIB, rank) for rank in ranks),
        ],
        1,
    )
    return made


def wrongs(found: Overview) -> dict[str, str]:
    """Return what is wrong with each rank, in the order of the table."""
    return {one.row.rank: in_short(one) for one in found.rows}


@pytest.mark.parametrize(("share", "said"), [(0.949, ""), (0.951, "full soon 95%")])
def test_nearly_at_the_limit(share: float, said: str) -> None:
    assert wrongs(overview(cluster(share * 10 * GIB), 2)) == {"0": said}


@pytest.mark.parametrize(("rate", "said"), [(4.0, "full in"), (0.4, "leak")])
def test_a_rise_is_a_leak_or_soon_the_end(rate: float, said: str) -> None:
    made = cluster(8 * GIB)
    made.take(Lane.TRENDS, [figure("", rate * MIB, means="rising")], 2)
    assert wrongs(overview(made, 2))["0"].startswith(said)


@pytest.mark.parametrize(("third", "said"), [(5.24, ""), (5.3, "outlier +307.2M"), (4.7, "outlier -307.2M")])
def test_a_rank_that_differs_from_the_median(third: float, said: str) -> None:
    assert wrongs(overview(cluster(5 * GIB, 5 * GIB, third * GIB), 2))["2"] == said


def test_what_ranks_usually_differ_by_makes_no_outlier() -> None:
    found = overview(cluster(4 * GIB, 4.5 * GIB, 5 * GIB, 5.5 * GIB, 6 * GIB, 8 * GIB), 2)
    assert {rank: said for rank, said in wrongs(found).items() if said} == {"5": "outlier +2.8G"}


def test_two_ranks_do_not_tell_who_is_the_outlier() -> None:
    assert set(wrongs(overview(cluster(5 * GIB, 9 * GIB), 2)).values()) == {""}


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
    made.take(Lane.TRENDS, [figure("", pace, str(rank), means="pace") for rank, pace in enumerate(paces)], 2)
    found = overview(made, 2)
    assert {rank: short for rank, short in wrongs(found).items() if short} == said
    if said.get("2") == "18% slower":
        told = at_length(found.rows[0].row, found.rows[0].wrongs[0])
        assert "2.1 steps a second in the last 00:10:00" in told and "job 42 is 2.6" in told


def test_a_finding_of_the_exporter_is_not_said_twice_nor_a_figure_that_says_more() -> None:
    made = cluster(8 * GIB)
    made.take(Lane.STATE, [figure("tfmemtop_finding", 1, key="leak", severity="warning")], 2)
    assert wrongs(overview(made, 2)) == {"0": "leak"}
    made.take(Lane.TRENDS, [figure("", 0.4 * MIB, means="rising")], 2)
    assert wrongs(overview(made, 2)) == {"0": "leak 24.0 MiB/min"}


def test_what_is_wrong_comes_first_in_the_order_of_what_matters() -> None:
    made = cluster(4.9 * GIB, 5 * GIB, 9.9 * GIB, 5 * GIB, 7 * GIB, 5 * GIB)
    made.take(
        Lane.STATE,
        [
            figure("tfmemtop_finding", 1, "1", key="leak", severity="warning"),
            figure("tfmemtop_finding", 1, "3", key="full_but_idle", severity="warning"),
            figure("tfmemtop_finding", 1, "5", key="cached_but_idle", severity="info"),
        ],
        2,
    )
    found = overview(made, 2)
    assert list(wrongs(found)) == ["2", "1", "3", "4", "0", "5"]
    assert found.wrong == 4


def test_what_is_only_information_is_not_wrong() -> None:
    """A rank on the CPU reports that it has no driver."""
    made = cluster(5 * GIB, 5 * GIB)
    driverless = [figure("tfmemtop_finding", 1, "1", key="notice_no_driver", severity="info")]
    made.take(Lane.STATE, driverless, 2)
    found = overview(made, 2)
    assert (wrongs(found), found.wrong) == ({"0": "", "1": ""}, 0)
    assert "no driver" in remark(found.rows[1].remarks[0])
    made.take(Lane.STATE, [figure("tfmemtop_finding", 1, "1", key="notice_gpu_lost", severity="warning")], 2)
    assert wrongs(overview(made, 2)) == {"1": "gpu lost", "0": ""}


def test_silence_is_told_and_is_not_health() -> None:
    made = cluster(5 * GIB, 5 * GIB)
    assert overview(made, 2).wrong == 0
    made.take(Lane.FIGURES, [figure("tfmemtop_in_use_high_bytes", 5 * GIB, "0")], 20)
    made.take(Lane.STATE, [figure("up", 0, "1", job="tfmemtop")], 21)
    silent = overview(made, 21).rows[0]
    assert (silent.row.rank, silent.row.in_use, silent.row.silence) == ("1", 5 * GIB, Silence.DOWN)
    assert in_short(silent) == "down 00:00:20"
    assert "has not answered Prometheus for 00:00:20" in at_length(silent.row, silent.wrongs[0])
    # As soon as the target answers again, nothing is reported as wrong.
    made.take(Lane.STATE, [], 30)
    made.take(Lane.FIGURES, [figure("tfmemtop_in_use_high_bytes", 5 * GIB, rank) for rank in "01"], 30)
    assert overview(made, 30).wrong == 0


def test_a_gpu_without_a_rank_is_down_with_the_target_of_its_host() -> None:
    made = Cluster()
    made.take(Lane.FIGURES, [], 1)
    made.take(Lane.STATE, [figure("tfmemtop_device_memory_used_bytes", 1, "7")], 1)
    overview(made, 1)
    made.take(Lane.FIGURES, [], 20)
    made.take(Lane.STATE, [Series(Labels(name="up", instance="n7:9", job="tfmemtop"), (0.0, "0"))], 20)
    (row,) = overview(made, 20).rows
    assert (row.row.uuid, row.row.silence) == ("GPU-7", Silence.DOWN)


def test_a_run_that_has_ended_is_no_silence_unless_it_failed() -> None:
    made = cluster(5 * GIB, 5 * GIB)
    overview(made, 2)
    made.take(Lane.FIGURES, [], 60)
    ended = [figure("tfmemtop_running", 0, rank) for rank in "01"]
    made.take(Lane.STATE, [*ended, figure("tfmemtop_finding", 1, "1", key="run_ended", severity="error")], 60)
    found = overview(made, 60)
    assert wrongs(found) == {"1": "run ended, ended", "0": "ended"}
    assert found.wrong == 1


def test_a_row_that_is_no_target_any_more_is_kept_for_a_while() -> None:
    made = cluster(5 * GIB, 5 * GIB)
    overview(made, 2)
    left = [figure("tfmemtop_in_use_high_bytes", 5 * GIB, "0")]
    made.take(Lane.FIGURES, left, 60)
    assert wrongs(overview(made, 60))["1"] == "gone 00:00:59"
    made.take(Lane.FIGURES, left, 60 + GONE_S)
    assert list(wrongs(overview(made, 60 + GONE_S))) == ["0"]


def test_a_job_that_is_gone_as_a_whole_has_probably_ended() -> None:
    made = cluster(5 * GIB, 5 * GIB)
    overview(made, 2)
    made.take(Lane.FIGURES, [figure("tfmemtop_in_use_high_bytes", 5 * GIB, "0")], 60)
    partly = overview(made, 60)
    made.take(Lane.FIGURES, [], 70)
    wholly = overview(made, 70)
    assert (partly.wrong, wholly.wrong) == (1, 0)
    assert wrongs(wholly) == {"1": "gone 00:01:09", "0": "gone 00:00:10"}
    rank = partly.rows[0]
    assert "Another rank of job 42" in at_length(rank.row, rank.wrongs[0])
    assert "all have ended" in at_length(wholly.rows[0].row, wholly.rows[0].wrongs[0])


def test_a_rank_without_tensorflow_is_no_rank_that_is_missing() -> None:
    made = cluster(5 * GIB)
    runs = [figure("tfmemtop_run_info", 1, rank, uuid="", device="", user="ada") for rank in "01"]
    made.take(Lane.FIXED, runs, 1)
    assert wrongs(overview(made, 1)) == {"1": "no TensorFlow", "0": ""}
    # Once the rank uses TensorFlow, its row is like any other. Its former row is not reported as gone.
    figures = [figure("tfmemtop_in_use_high_bytes", 5 * GIB, rank) for rank in "01"]
    made.take(Lane.FIGURES, figures, 5)
    assert wrongs(overview(made, 5)) == {"0": "", "1": ""}
    # At the end of a rank its figures disappear first. It must not be shown as a rank without TensorFlow then.
    made.take(Lane.FIGURES, figures[:1], 10)
    assert wrongs(overview(made, 10)) == {"1": "gone 00:00:05", "0": ""}
    made.take(Lane.STATE, [figure("tfmemtop_running", 0, "1", uuid="", device="")], 11)
    assert wrongs(overview(made, 11)) == {"1": "ended", "0": ""}


@pytest.mark.parametrize(("tensorflow", "said"), [("", "no TensorFlow"), ("2.21.0", "memory not read")])
def test_a_rank_has_some_minutes_to_import(tensorflow: str, said: str) -> None:
    made = Cluster()
    place = {"uuid": "", "device": ""}
    run = figure("tfmemtop_run_info", 1, user="ada", tensorflow=tensorflow, **place)
    start = figure("tfmemtop_run_start_time_seconds", 1000.7, **place)
    made.take(Lane.FIGURES, [], 1010)
    made.take(Lane.FIXED, [run, start], 1010)
    found = overview(made, 1010)
    assert (wrongs(found), found.wrong) == ({"0": ""}, 0)
    # The start of the run is queried less often than the figures.
    made.take(Lane.FIGURES, [], 1002 + STARTING_S)
    assert wrongs(overview(made, 1002 + STARTING_S)) == {"0": said}
    made.take(Lane.FIXED, [run], 1060 + STARTING_S)
    assert wrongs(overview(made, 1060 + STARTING_S)) == {"0": said}


def test_old_figures_are_told_as_such() -> None:
    made = cluster(9.9 * GIB)
    made.take(Lane.SILENT, [figure("", 300, means="old")], 2)
    found = overview(made, 2).rows[0]
    assert [wrong.kind for wrong in found.wrongs] == [Kind.SILENT]
    assert in_short(found) == "old 00:05:00"


def test_hosts_that_tell_only_a_part_have_rows() -> None:
    made = Cluster()
    made.take(Lane.FIGURES, [], 1)
    partly = [figure("tfmemtop_in_use_bytes", GIB), figure("tfmemtop_device_memory_used_bytes", 1, "7")]
    made.take(Lane.STATE, partly, 1)
    rows = {one.row.host: one.row for one in overview(made, 1).rows}
    assert (rows["n0"].in_use, rows["n0"].share, rows["n7"].used, rows["n7"].in_use) == (GIB, None, 1, None)


def test_labels_that_prometheus_renamed_are_understood() -> None:
    own = {"host": "n0", "uuid": "u", "device": "GPU:0", "run": "1", "instance": "n0:9"}
    renamed = Labels(name="tfmemtop_in_use_bytes", job="tfmemtop", exported_job="42", exported_rank="3", **own)
    made = Cluster()
    made.take(Lane.FIGURES, [Series(renamed, (0.0, "1"))], 1)
    row = overview(made, 1).rows[0].row
    assert (row.job, row.rank) == ("42", "3")


def test_a_label_without_end_is_cut() -> None:
    made = Cluster()
    made.take(Lane.FIGURES, [figure("tfmemtop_in_use_high_bytes", 1, host="x" * 10_000)], 1)
    assert all(len(text) < 200 for text in msgspec.structs.astuple(made.rows()[0]) if isinstance(text, str))


# The rows of the cluster's table: which of them a filter keeps.


ROWS = (
    Judged(ClusterRow("n1:9", "Node1", "GPU-1", job="Train", rank="Worker-1", user="Ada")),
    Judged(ClusterRow("n2:9", "Node2", "GPU-2", job="Training", rank="Worker-12", user="Grace")),
)


@pytest.mark.parametrize(
    ("wanted", "hosts"),
    [
        ("job:Train", ["Node1"]),
        ("job:train", ["Node1"]),
        ("JOB:TRAIN", ["Node1"]),
        ("rank:worker-1", ["Node1"]),
        ("rank:Worker-12", ["Node2"]),
        ("rank:worker", []),
        ("user:GRACE", ["Node2"]),
        ("TRAINING node2", ["Node2"]),
        ("job:", ["Node1", "Node2"]),
    ],
)
def test_a_filter_matches_in_any_case(wanted: str, hosts: list[str]) -> None:
    assert [one.row.host for one in matching(ROWS, wanted)] == hosts
