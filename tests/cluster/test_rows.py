"""The rows of the cluster's table: which of them a filter keeps."""

import pytest

from tfmemtop.cluster.judge import Judged
from tfmemtop.cluster.overview import ClusterRow
from tfmemtop.ui.panels.cluster_rows import matching

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
