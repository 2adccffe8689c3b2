"""The options that give the figures to Prometheus."""

from pathlib import Path

from tfmemtop.commands import values
from tfmemtop.commands.arguments import RunArguments
from tfmemtop.commands.parser import Parser
from tfmemtop.engine.process.launch import Export
from tfmemtop.options import Refusal


def add_export_options(parser: Parser) -> None:
    """``--metrics``, ``--metrics-sd`` and ``--metrics-file``."""
    group = parser.add_argument_group("for Prometheus")
    group.add_argument(
        "--metrics",
        metavar="[ADDR:]PORT",
        type=values.address,
        help="answer Prometheus at this port (of 127.0.0.1 unless ADDR is given); 0: any free port",
    )
    group.add_argument(
        "--metrics-sd",
        metavar="FILE",
        type=values.file,
        help="write where the metrics are to FILE, for Prometheus' file_sd_configs",
    )
    group.add_argument(
        "--metrics-file",
        metavar="FILE.prom",
        type=values.prom_file,
        help="write the metrics to FILE.prom, for node_exporter's textfile collector",
    )


def export_of(arguments: RunArguments, cwd: str) -> Export | None:
    """Where the metrics are to go; relative paths are those in *cwd*.

    Raises:
        Refusal: the options contradict each other.
    """
    if arguments.metrics is None:
        if arguments.metrics_sd is not None:
            raise Refusal("--metrics-sd needs --metrics; for example: --metrics 0 --metrics-sd tfmemtop.json")
        if arguments.metrics_file is None:
            return None
    elif arguments.metrics[1] == 0 and arguments.metrics_sd is None:
        raise Refusal("--metrics 0 takes any free port: --metrics-sd FILE has to tell Prometheus which")
    address, port = arguments.metrics or ("127.0.0.1", None)

    def path(file: Path | None) -> str | None:
        return None if file is None else str(Path(cwd, file))

    return Export(
        address=address, port=port, discovery=path(arguments.metrics_sd), textfile=path(arguments.metrics_file)
    )
