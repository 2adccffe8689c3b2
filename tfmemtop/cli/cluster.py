"""Show the GPUs of many machines, read from a Prometheus server.

usage: tfmemtop cluster --prometheus URL [--job J] [OPTIONS]
usage: tfmemtop cluster --prometheus URL --once [--json]
example: tfmemtop cluster --prometheus http://monitor:9090 --job 42

Prometheus must read programs that were started with --metrics; see tfmemtop help cluster. One row is a rank or
a GPU. Rows with a problem come first. No program is changed.

Give a password in a file. In the URL (http://USER:PASSWORD@HOST) other users can see it in the list of processes.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import json

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_OUTPUT, ScreenArguments, file_name, seconds
from tfmemtop.cli.launch import terminal_size
from tfmemtop.cli.output import print_encoded, print_lines, say, say_trouble
from tfmemtop.cli.parser import option, switch
from tfmemtop.cluster.client import Address, PrometheusClient
from tfmemtop.cluster.rows import ClusterRow
from tfmemtop.cluster.watch import Asking, no_answer, nothing_of
from tfmemtop.safe import safe
from tfmemtop.units import UNKNOWN, aligned, format_short

_FOR_SERVER = "for the server"


class ClusterArguments(ScreenArguments):
    """The server, the job, and how they are shown."""

    prometheus: str = option(_FOR_SERVER, "the address of Prometheus", metavar="URL", required=True)
    job: str | None = option(
        _FOR_SERVER, "show only this job: the scheduler's number, or the name in Prometheus", metavar="J"
    )
    token_file: Path | None = option(
        _FOR_SERVER, "a file with the bearer token that the server wants", metavar="FILE", type=file_name
    )
    login_file: Path | None = option(
        _FOR_SERVER, "a file with USER:PASSWORD that the server wants", metavar="FILE", type=file_name
    )
    refresh: float = option(
        _FOR_SERVER,
        "time between two refreshes, 1 to 3600 (default 5); longer if the answers take long",
        metavar="SECONDS",
        type=seconds(1, 3600),
        default=5.0,
    )
    once: bool = switch(FOR_OUTPUT, "print the table once, without a screen")
    json: bool = switch(FOR_OUTPUT, "print JSON, one row a line")
    readonly: bool = False
    no_notify: bool = False

    def check(self) -> None:
        if self.json and not self.once:
            raise Refusal("cluster --json needs --once")
        if self.token_file and self.login_file:
            raise Refusal("give --token-file or --login-file, not both")


ARGUMENTS = ClusterArguments


def run(arguments: ClusterArguments) -> int:
    """Show the screen, or print the table once; return the exit code, which is 1 if Prometheus did not answer.

    Raises:
        Refusal: the address or a file is not valid, or there is no terminal.
    """
    client = PrometheusClient(_address(arguments))
    if arguments.once:
        return _once(client, arguments)
    terminal_size("use tfmemtop cluster --once")
    from tfmemtop.ui.main import run_cluster

    options = arguments.ui_options(dict(os.environ))
    outcome = run_cluster(Asking(client, arguments.job), options, job=arguments.job, interval_s=arguments.refresh)
    say_trouble(outcome.trouble)
    return outcome.exit_code


def _address(arguments: ClusterArguments) -> Address:
    token, login = (_secret(path) if path else "" for path in (arguments.token_file, arguments.login_file))
    if login and ":" not in login:
        raise Refusal(f"{arguments.login_file}: there is no USER:PASSWORD in it")
    try:
        return Address.of(arguments.prometheus, token=token, login=login)
    except ValueError:
        # The address may contain a password, so the message does not repeat it.
        raise Refusal("--prometheus needs an address such as http://monitor:9090") from None


def _secret(path: Path) -> str:
    """Return the first line of the file *path*.

    Raises:
        Refusal: the file cannot be read, is not text, or its first line is empty.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else "it is not text"
        raise Refusal(f"{path} cannot be read: {reason}") from None
    line = text.partition("\n")[0].strip()
    if not line:
        raise Refusal(f"{path} is empty")
    return line


def _once(client: PrometheusClient, arguments: ClusterArguments) -> int:
    asking = Asking(client, arguments.job)
    seen = asking.refresh()
    while seen.trouble is None and not seen.complete:
        seen = asking.refresh()
    if seen.trouble is not None:
        say(no_answer(client.address.url, seen.trouble))
        return 1
    if arguments.json:
        for row in seen.rows:
            print_encoded(_as_json(row))
    elif seen.rows:
        print_lines([*_table(seen.rows), "", seen.totals])
    if not seen.rows:
        say(nothing_of(arguments.job))
    return 0


_HEADINGS = ["HOST", "GPU", "JOB", "RANK", "USER", "USED", "TOTAL", "TF-USE", "LIMIT", "UTIL", "WRONG"]
_LEFT = {0, 4, 10}


def _table(rows: Sequence[ClusterRow]) -> list[str]:
    """Return a line with the headings, and one for each row."""
    return aligned([_HEADINGS, *map(_cells, rows)], _LEFT)


def _cells(row: ClusterRow) -> list[str]:
    busy = UNKNOWN if row.busy is None else f"{row.busy * 100:.0f}%"
    names = [row.host, row.gpu or row.gpu_name, row.job, row.rank, row.user]
    sizes = [format_short(size) for size in (row.used, row.total, row.in_use, row.limit)]
    return [*(safe(name) or UNKNOWN for name in names), *sizes, busy, row.wrong]


def _as_json(row: ClusterRow) -> bytes:
    """Return one row as a JSON object. Sizes are in bytes; values that are not known are null."""
    return json.encode(
        {
            **{name: getattr(row, name) for name in ("host", "instance", "gpu", "uuid", "device", "model")},
            **{name: getattr(row, name) or None for name in ("run", "job", "rank", "user")},
            **{name: getattr(row, name) for name in ("in_use", "limit", "used", "total", "busy")},
            "silence": row.silence,
            "findings": [{"key": key, "severity": severity} for key, severity in row.findings],
            "wrong": [{"kind": wrong.kind.name.lower(), **wrong.figures} for wrong in row.wrongs],
        }
    )
