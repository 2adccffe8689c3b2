"""Run the cases and print the score: ``python -m tests.field [NAME…]``.

A case counts if the cause, the holder and the remedy of the verdict are right, and nothing false is said. Without
``--from``, each case and what mends it are run first, and must fail and pass as the table says.
"""

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.field.cases import CASES
from tests.field.judging import Score, tried

ON_GPU = "--growth on --memory-limit"
"""What a pool of the CPU is on a GPU."""


IN_HOST = ("dataset_buffer", "host_growth")
"""The causes that fill the host's memory, also on a machine with a GPU."""


def markdown(scores: list[Score]) -> str:
    """Return the table of the manual's page: the cases by their cause."""
    causes = {case.name: case.cause.replace("|", " or ") for case in CASES}
    rows: dict[str, tuple[list[str], list[str]]] = {}
    for score in scores:
        solved, missed = rows.setdefault(causes[score.name], ([], []))
        (missed if score.misses else solved).append(score.name.replace("_", " "))
    table = [f"| {cause} | {', '.join(solved)} | {', '.join(missed)} |" for cause, (solved, missed) in rows.items()]
    return "\n".join(["| true cause | solved | not solved |", "| --- | --- | --- |", *table])


def main() -> int:
    """Return 0 if all cases are solved."""
    parser = argparse.ArgumentParser(prog="python -m tests.field", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--gpu", action="store_true", help="run the cases for a GPU, and only these")
    parser.add_argument(
        "--on-gpu",
        action="store_true",
        help="run the CPU's cases on a GPU, under a limit of the same size",
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings and the outputs in FOLDER")
    parser.add_argument("--from", type=Path, metavar="FOLDER", dest="kept", help="score the recordings in FOLDER")
    parser.add_argument("--no-mended", action="store_true", help="do not run what mends the cases")
    parser.add_argument("--markdown", action="store_true", help="print the table for the manual")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="how many run at the same time")
    words = parser.parse_args()
    chosen = [case for case in CASES if case.on_gpu == words.gpu and (not words.names or case.name in words.names)]
    if words.on_gpu:
        chosen = [
            replace(case, options=case.options.replace("--cpu-pool", ON_GPU))
            for case in chosen
            if "--cpu-pool" in case.options and case.cause not in IN_HOST
        ]
    if unknown := set(words.names) - {case.name for case in chosen}:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as temporary, ProcessPoolExecutor(words.j) as pool:
        folder: Path = (words.kept or words.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        again, mended = words.kept is not None, not words.no_mended
        running = [pool.submit(tried, case, folder, again=again, mended=mended) for case in chosen]
        scores = []
        for each in running:
            scores.append(score := each.result())
            if not words.markdown:
                print(f"{score.name:24} {'miss' if score.misses else 'solved'}  {score.text}")
                print("".join(f"    {miss}\n" for miss in score.misses), end="", flush=True)
    solved = sum(not score.misses for score in scores)
    print(markdown(scores) + "\n" if words.markdown else "", f"{solved} of {len(scores)} cases are solved", sep="")
    return int(solved < len(scores))


if __name__ == "__main__":
    raise SystemExit(main())
