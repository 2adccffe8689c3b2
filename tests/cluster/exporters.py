"""Exporters written for tests: one HTTP server that answers for any number of hosts, each with GPUs and ranks.

The metrics have the names and labels of ``--metrics``.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GIB = 2**30


@dataclass
class Rank:
    """A process with TensorFlow on GPU ``gpu`` of a host, as its exporter reports it. ``figures``: value by metric."""

    gpu: int = 0
    job: str = "42"
    rank: str = "0"
    user: str = "ada"
    figures: dict[str, float] = field(
        default_factory=lambda: {
            "in_use_bytes": 20 * GIB,
            "in_use_high_bytes": 22 * GIB,
            "pool_bytes": 30 * GIB,
            "peak_bytes": 24 * GIB,
            "limit_bytes": 76 * GIB,
            "context_bytes": GIB // 2,
            "process_total_bytes": 31 * GIB,
        }
    )
    findings: dict[str, str] = field(default_factory=dict)  # severity by key


@dataclass
class Host:
    """What one exporter answers. If ``silent`` is true, it answers each request with HTTP 503."""

    name: str
    ranks: list[Rank] = field(default_factory=list)
    gpus: int = 1
    device: dict[str, float] = field(
        default_factory=lambda: {
            "memory_used_bytes": 32 * GIB,
            "memory_free_bytes": 48 * GIB,
            "memory_total_bytes": 80 * GIB,
            "utilization_ratio": 0.9,
        }
    )
    silent: bool = False

    def uuid(self, gpu: int) -> str:
        """Return the UUID of a GPU of this host, in the driver's form."""
        return f"GPU-{abs(hash(self.name)) % 2**32:08x}-1d5b-4a6b-9c40-{gpu:012x}"

    def text(self) -> str:
        """Return the metrics in the text format that Prometheus reads."""
        lines = []
        for rank in self.ranks:
            own = f'host="{self.name}",uuid="{self.uuid(rank.gpu)}",device="GPU:0",'
            of_run = f'run="1",job="{rank.job}",rank="{rank.rank}"'
            lines += [f"tfmemtop_{name}{{{own}{of_run}}} {value}" for name, value in rank.figures.items()]
            for key, severity in rank.findings.items():
                lines.append(f'tfmemtop_finding{{{own}{of_run},key="{key}",severity="{severity}"}} 1')
            lines.append(f'tfmemtop_run_info{{host="{self.name}",{of_run},user="{rank.user}"}} 1')
        for gpu in range(self.gpus):
            own = f'host="{self.name}",uuid="{self.uuid(gpu)}"'
            lines.append(f'tfmemtop_device_info{{{own},index="{gpu}",name="NVIDIA H100"}} 1')
            lines += [f"tfmemtop_device_{name}{{{own}}} {value}" for name, value in self.device.items()]
        return "\n".join(lines) + "\n"


class Exporters:
    """A server for all *hosts*, each under ``/HOST/metrics``."""

    def __init__(self, hosts: list[Host]) -> None:
        self.hosts = {host.name: host for host in hosts}
        hosts_of = self.hosts

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host = hosts_of.get(self.path.split("/")[1])
                body = host.text().encode() if host and not host.silent else b"silent"
                self.send_response(200 if host and not host.silent else 503)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Write nothing: no test reads this log."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


@contextmanager
def exporting(hosts: list[Host]) -> Iterator[Exporters]:
    """Run a server for *hosts* during the ``with`` block."""
    exporters = Exporters(hosts)
    try:
        yield exporters
    finally:
        exporters.close()
