"""Print a Grafana dashboard for the metrics that --metrics gives to Prometheus.

usage: tfmemtop dashboard
example: tfmemtop dashboard

Save it to a file and import that in Grafana (Dashboards, New, Import). See also: tfmemtop help metrics.
"""

from pathlib import Path

from tfmemtop.cli.output import print_lines
from tfmemtop.cli.parser import BaseArguments
from tfmemtop.engine import metrics

DASHBOARD = Path(metrics.__file__).with_name("dashboard.json")


def run(arguments: BaseArguments) -> int:
    """Print the dashboard as JSON; return 0."""
    print_lines(DASHBOARD.read_text("utf-8").splitlines())
    return 0
