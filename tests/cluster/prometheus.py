"""A real Prometheus for tests: on a free port, with a folder of its own, ended with the test."""

import base64
import json
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.patience import PATIENCE_S, until

BINARY = shutil.which("prometheus")


def free_port() -> int:
    """Return a port of this machine at which no process listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Prometheus:
    """A Prometheus process, with its configuration and its data in *folder*."""

    def __init__(self, folder: Path, port: int, *, password: str = "") -> None:
        self.folder, self.port, self.password = folder, port, password
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start Prometheus, and wait until it is ready."""
        arguments = [
            *(BINARY or "prometheus", f"--config.file={self.folder}/prometheus.yml"),
            *(f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address=127.0.0.1:{self.port}"),
            *("--log.level=error", "--query.lookback-delta=5m"),
        ]
        if self.password:
            arguments.append(f"--web.config.file={self.folder}/web.yml")
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._wait_for("/-/ready")

    def stop(self) -> None:
        """End Prometheus. The data that it has stored stay."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(PATIENCE_S)
            self.process = None

    def _wait_for(self, path: str) -> None:
        def answers() -> bool:
            with suppress(OSError):
                self.get(path)
                return True
            assert self.process is not None and self.process.poll() is None, (self.folder / "log").read_text()
            return False

        until(answers)

    def get(self, path: str) -> bytes:
        """Return the body of Prometheus's answer to a request for *path*."""
        request = urllib.request.Request(self.url + path)
        if self.password:
            request.add_header("Authorization", "Basic " + base64.b64encode(f"ada:{self.password}".encode()).decode())
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            body: bytes = answer.read()
            return body

    def api(self, path: str, **parameters: str) -> Any:
        """Return the data of the answer of the API at *path*."""
        return json.loads(self.get(f"/api/v1/{path}?{urlencode(parameters)}"))["data"]

    def query(self, text: str) -> list[dict[str, Any]]:
        """Return the series that the query *text* gives now."""
        found: list[dict[str, Any]] = self.api("query", query=text)["result"]
        return found

    def wait_until(self, text: str, count: int = 1) -> None:
        """Wait until the query *text* gives at least *count* series."""
        until(lambda: len(self.query(text)) >= count)


def configuration(exporters_port: int, hosts: Sequence[str]) -> str:
    """Return a configuration file with which Prometheus scrapes those hosts once a second."""
    lines = [
        "global: {scrape_interval: 1s, scrape_timeout: 1s}",
        "scrape_configs:",
        "- job_name: tfmemtop",
        "  honor_labels: true",
        "  static_configs:",
    ]
    lines += [f"  - {{targets: ['{host}:9'], labels: {{__metrics_path__: '/{host}/metrics'}}}}" for host in hosts]
    lines += [
        # The label instance is set before the address is replaced, so it names the host, as in a real cluster.
        "  relabel_configs:",
        "  - {source_labels: [__address__], target_label: instance}",
        f"  - {{target_label: __address__, replacement: '127.0.0.1:{exporters_port}'}}",
    ]
    return "\n".join(lines) + "\n"


@contextmanager
def prometheus(folder: Path, configuration: str, *, hashed: str = "", password: str = "") -> Iterator[Prometheus]:
    """Run Prometheus with this *configuration* during the ``with`` block. *hashed* is the bcrypt of *password*."""
    (folder / "prometheus.yml").write_text(configuration)
    if password:
        (folder / "web.yml").write_text(f"basic_auth_users:\n  ada: {hashed}\n")
    program = Prometheus(folder, free_port(), password=password)
    program.start()
    try:
        yield program
    finally:
        program.stop()
