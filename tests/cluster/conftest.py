"""Fixtures: a cluster of a few hosts with several kinds of problem, which a real Prometheus scrapes."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster.exporters import GIB, Exporters, Host, Rank, exporting
from tests.cluster.prometheus import BINARY, Prometheus, configuration, prometheus

HASHED = "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"
"""bcrypt of ``test``, from Prometheus's own documentation."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if BINARY is None:
        reason = "prometheus is not installed (Debian: apt-get install prometheus)"
        for item in items:
            if "monitored" in getattr(item, "fixturenames", ()) or item.get_closest_marker("prometheus"):
                item.add_marker(pytest.mark.skip(reason=reason))


def hosts() -> list[Host]:
    """Return six hosts: four with ranks of job 42, one with a rank of job 43 that is nearly full, one without a run.

    Of job 42, rank 2 is an outlier and rank 3 has a leak.
    """
    ranks = [Rank(rank=str(number)) for number in range(4)]
    ranks[2].figures = ranks[2].figures | {"in_use_bytes": 29 * GIB, "in_use_high_bytes": 30 * GIB}
    ranks[3].findings = {"leak": "warning"}
    full = Rank(job="43", user="grace")
    full.figures = full.figures | {"in_use_bytes": 40 * GIB, "in_use_high_bytes": 75 * GIB}
    named = [Host(f"node{number}", [rank]) for number, rank in enumerate(ranks)]
    return [*named, Host("node4", [full]), Host("node5", gpus=1)]


@dataclass
class Monitored:
    """The exporters, and the Prometheus that scrapes them."""

    exporters: Exporters
    prometheus: Prometheus


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    folder = tmp_path_factory.mktemp("prometheus")
    made = hosts()
    with (
        exporting(made) as exporters,
        prometheus(
            folder, configuration(exporters.port, [host.name for host in made]), hashed=HASHED, password="test"
        ) as server,
    ):
        server.wait_until("tfmemtop_run_info", 5)
        server.wait_until("up == 1", 6)
        yield Monitored(exporters, server)


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port that is bound, but at which no process listens: a connection is refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
