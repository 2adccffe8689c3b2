"""Print a Grafana dashboard for the metrics that --metrics gives to Prometheus.

usage: tfmemtop dashboard
example: tfmemtop dashboard

Save it to a file and import that in Grafana (Dashboards, New, Import). See also: tfmemtop help metrics.
"""

from tfmemtop.cli.parser import BaseArguments, Parser
from tfmemtop.cli.saying import tell
from tfmemtop.engine.metrics.dashboard import dashboard


def declare(parser: Parser) -> None:
    """Declare nothing: this command has no options."""


def run(arguments: BaseArguments) -> int:
    """Print the dashboard as JSON; return 0."""
    tell(dashboard().splitlines())
    return 0
