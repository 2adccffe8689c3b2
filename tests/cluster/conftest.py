"""A cluster of a few hosts that a real Prometheus reads, with something wrong of every kind."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster.exporters import GIB, Exporters, Host, Rank, exporting
from tests.cluster.prometheus import BINARY, Prometheus, prometheus

HASHED = "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"
"""bcrypt of ``test``, from Prometheus's own documentation."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if BINARY is None:
        reason = "prometheus is not installed (Debian: apt-get install prometheus)"
        for item in items:
            if "monitored" in getattr(item, "fixturenames", ()) or item.get_closest_marker("prometheus"):
                item.add_marker(pytest.mark.skip(reason=reason))


def hosts() -> list[Host]:
    """Four ranks of job 42, of which rank 2 is the outlier; one of job 43, nearly full; a GPU without a run."""
    ranks = [Rank(rank=str(number)) for number in range(4)]
    ranks[2].figures = ranks[2].figures | {"in_use_bytes": 29 * GIB, "in_use_high_bytes": 30 * GIB}
    ranks[3].findings = {"leak": "warning"}
    full = Rank(job="43", user="grace")
    full.figures = full.figures | {"in_use_bytes": 40 * GIB, "in_use_high_bytes": 75 * GIB}
    named = [Host(f"node{number}", [rank]) for number, rank in enumerate(ranks)]
    return [*named, Host("node4", [full]), Host("node5", gpus=1)]


@dataclass
class Monitored:
    """The exporters, and the Prometheus that reads them."""

    exporters: Exporters
    prometheus: Prometheus


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    folder = tmp_path_factory.mktemp("prometheus")
    made = hosts()
    with (
        exporting(made) as exporters,
        prometheus(folder, exporters.port, [host.name for host in made], hashed=HASHED, password="test") as server,
    ):
        server.wait_until("tfmemtop_run_info", 5)
        server.wait_until("up == 1", 6)
        yield Monitored(exporters, server)


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port that is taken and at which nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
