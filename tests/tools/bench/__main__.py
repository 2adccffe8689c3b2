"""All measurements, or those named: ``python -m tests.tools.bench [NAME…] [--quick]`` prints a markdown table."""

import argparse
import sys
import traceback
from importlib import import_module

from tests.tools.bench.table import Row, machine, table

NAMES = (
    "overhead",
    "start",
    "frame",
    "watching",
    "recording",
    "peers",
    "page",
)


def main() -> int:
    """Measure and print the table. Return 1 if something is over its bound."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all if none")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs: a first look")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    print(f"Machine: {machine()}.", file=sys.stderr)
    rows: list[Row] = []
    for name in arguments.names or NAMES:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            rows += import_module(f"tests.tools.bench.{name}").measure(arguments.quick)
        except Exception as error:
            # One failure does not stop a long measurement; the others go on.
            traceback.print_exc()
            rows.append(Row(name, "", f"failed: {type(error).__name__}", "see above", within=False))
    print(table(rows))
    return int(any(row.within is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
