"""Every recording of the tests has the same events after it was converted to a compressed file and back."""

from pathlib import Path

import pytest

from tfmemtop.cli.main import main
from tfmemtop.events import decode_event
from tfmemtop.events.recording import read

RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.mark.parametrize("path", sorted(RECORDINGS.rglob("*.jsonl")), ids=lambda path: path.stem)
def test_events_survive_compression(tmp_path: Path, path: Path) -> None:
    packed, plain, again = (tmp_path / name for name in ("run.jsonl.gz", "run.jsonl", "again.jsonl"))
    assert main(["convert", str(path), str(packed)]) == 0
    assert main(["convert", str(packed), str(plain)]) == 0
    assert list(read(packed).events()) == list(read(plain).events()) == list(read(path).events())
    assert read(packed).damaged == read(plain).damaged == read(path).damaged == 0
    # Lines of *path* may lack fields that have been added since. Lines of this tfmemtop do not change.
    assert main(["convert", str(plain), str(again)]) == 0
    assert again.read_bytes() == plain.read_bytes()


def test_what_is_left_out_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "newer.jsonl", tmp_path / "out.jsonl"
    path.write_bytes((RECORDINGS / "cpu-plain.jsonl").read_bytes() + b'{"type":"weather","t":9.0}\n{"type":\n[\n')
    assert main(["convert", str(path), str(out)]) == 0
    assert capsys.readouterr().err.endswith("2 damaged lines and 1 unknown line left out\n")
    assert list(read(out).events()) == list(read(path).events())


@pytest.mark.parametrize("name", ["cpu-plain.jsonl", "h200-runs.jsonl"])
def test_the_name_of_stdout_prints_lines_for_other_programs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(RECORDINGS / name), "-"]) == 0
    told = capsys.readouterr().out
    assert told.isascii()
    lines = told.splitlines()
    assert [decode_event(line.encode()) for line in lines] == list(read(RECORDINGS / name).events())
