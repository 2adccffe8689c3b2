"""A real Prometheus for tests: on a free port, with a folder of its own, ended with the test."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.patience import PATIENCE_S, until

BINARY = shutil.which("prometheus")
INTERVAL_S = 1


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
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.get(path)
                return
            except OSError:
                if time.monotonic() > until or (self.process and self.process.poll() is not None):
                    raise
            time.sleep(0.05)

    def get(self, path: str) -> bytes:
        """Return the body of Prometheus's answer to a request for *path*."""
        request = urllib.request.Request(self.url + path)
        if self.password:
            request.add_header("Authorization", "Basic " + base64.b64encode(f"ada:{self.password}".encode()).decode())
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            body: bytes = answer.read()
            return body

    def query(self, text: str) -> list[dict[str, Any]]:
        """Return the series that the query *text* gives now."""
        found: list[dict[str, Any]] = json.loads(self.get("/api/v1/query?" + urlencode({"query": text})))["data"][
            "result"
        ]
        return found

    def wait_until(self, text: str, count: int = 1) -> None:
        """Wait until the query *text* gives at least *count* series."""
        until(lambda: len(self.query(text)) >= count)


def configuration(
    exporters_port: int, hosts: Sequence[str], interval_s: float = INTERVAL_S, *, honor_labels: bool = True
) -> str:
    """Return a configuration file with which Prometheus scrapes those hosts."""
    milliseconds = int(interval_s * 1000)
    lines = [
        f"global: {{scrape_interval: {milliseconds}ms, scrape_timeout: {min(milliseconds, 10_000)}ms}}",
        "scrape_configs:",
        "- job_name: tfmemtop",
        f"  honor_labels: {'true' if honor_labels else 'false'}",
        "  static_configs:",
    ]
    lines += [f"  - {{targets: ['{host}:9'], labels: {{__metrics_path__: '/{host}/metrics'}}}}" for host in hosts]
    lines += [
        "  relabel_configs:",
        f"  - {{target_label: __address__, replacement: '127.0.0.1:{exporters_port}'}}",
    ]
    # The label instance is set before the address is replaced, so it names the host, as in a real cluster.
    lines.insert(-1, "  - {source_labels: [__address__], target_label: instance}")
    return "\n".join(lines) + "\n"


_WEB = """\
basic_auth_users:
  ada: {hashed}
"""


def by_files(pattern: str) -> str:
    """Return a configuration file with which Prometheus scrapes the targets that files matching *pattern* name."""
    return f"""\
global: {{scrape_interval: 1s}}
scrape_configs:
- job_name: tfmemtop
  honor_labels: true
  file_sd_configs:
  - {{files: ['{pattern}'], refresh_interval: 1s}}
"""


@contextmanager
def prometheus(
    folder: Path,
    exporters_port: int,
    hosts: Sequence[str],
    interval_s: float = INTERVAL_S,
    *,
    hashed: str = "",
    password: str = "",
    honor_labels: bool = True,
    files: str = "",
) -> Iterator[Prometheus]:
    """Run Prometheus during the ``with`` block. *hashed* is the bcrypt of *password*.

    With *files*, the targets are those that files matching this pattern name.
    """
    exporters = configuration(exporters_port, hosts, interval_s, honor_labels=honor_labels)
    (folder / "prometheus.yml").write_text(by_files(files) if files else exporters)
    if password:
        (folder / "web.yml").write_text(_WEB.format(hashed=hashed))
    program = Prometheus(folder, free_port(), password=password)
    program.start()
    try:
        yield program
    finally:
        program.stop()
