"""``tfmemtop holders``: a table that adds up, JSON for programs, and one line if there is nothing to show."""

import json
from pathlib import Path

import pytest

from tests import streams as s
from tests import windows as w
from tfmemtop import events
from tfmemtop.cli.main import main
from tfmemtop.events import encode


def recording(folder: Path, *more: events.Event) -> str:
    """Write a recording of one run that also contains the events *more*. Return its path."""
    stream = [s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), s.allocator(2.0, 100, 1), w.census(), *more]
    path = folder / "run.jsonl"
    path.write_bytes(b"".join(encode(event) + b"\n" for event in stream))
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["holders", *words]) == 0
    return capsys.readouterr().out


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path, w.step().done())
    lines = printed(capsys, path).splitlines()
    head = lines.index(next(line for line in lines if line.startswith("LAYER")))
    assert " ".join(lines[: head - 1]) == (
        "Who held the 52.0 MiB that were in use in the pool of GPU:0 of process 100 at the peak of one step of "
        "train_step. It was recorded at 9 s, by schedule."
    )
    assert [line.split() for line in lines[head:]] == [
        ["LAYER", "KIND", "BYTES", "SHARE", "COUNT"],
        ["down", "gradients,", "optimizer,", "variables", "20.0", "MiB", "38.5%", "5"],
        ["up", "optimizer,", "activations,", "gradients,", "variables", "20.0", "MiB", "38.5%", "5"],
        ["optimizer", "optimizer", "8.0", "MiB", "15.4%", "2"],
        ["input", "input", "4.0", "MiB", "7.7%", "1"],
        ["compile_loss/mse", "loss", "256", "B", "0.0%", "1"],
        ["in", "use", "at", "the", "peak", "52.0", "MiB", "100.0%"],
    ]


@pytest.mark.parametrize("by", ["layer", "op", "kind", "shape", "line"])
def test_json_adds_up(by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = w.step().done(unknown=3000)
    path = recording(tmp_path, window)
    told = json.loads(printed(capsys, path, "--by", by, "--json"))
    assert set(told) == {"device", "peak", "at", "rows", "unknown"}
    assert told["device"] == "GPU:0" and told["peak"] == window.peak and 9.7 < told["at"] < 9.9
    assert sum(row["bytes"] for row in told["rows"]) + told["unknown"] == told["peak"]
    assert told["unknown"] == 3000
    text = printed(capsys, path, "--by", by)
    assert "Unknown: 2.9 KiB belong to no allocation that was recorded." in text


def test_the_fullest_pool_unless_another_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path, w.step(rows=4).done(), w.step(device="GPU:1").done(t=11.0))
    assert json.loads(printed(capsys, path, "--json"))["device"] == "GPU:1"
    assert json.loads(printed(capsys, path, "--json", "--device", "GPU:0"))["device"] == "GPU:0"
    assert "Other pool: GPU:0 (--device)." in " ".join(printed(capsys, path).split())
    assert main(["holders", path, "--device", "GPU:7"]) == 2
    assert "there is no window of GPU:7, only of GPU:0, GPU:1" in capsys.readouterr().err


def test_without_a_window_one_line_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["holders", recording(tmp_path)]) == 2
    assert "run.jsonl holds no window of allocations" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["holders", "whatif"])
def test_without_a_compiler_it_names_that_and_what_helps(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unbuilt = events.Unbuilt(why=events.Unbuildable.NO_COMPILER, detail="apt-get install g++")
    probe = events.Probe(t=1.2, pid=100, state=events.ProbeState.UNAVAILABLE, unbuilt=unbuilt)
    direct = events.Probe(t=1.3, pid=100, state=events.ProbeState.DIRECT)
    assert main([command, recording(tmp_path, probe, direct)]) == 2
    assert "there is no C++ compiler; apt-get install g++" in capsys.readouterr().err


def test_a_name_from_outside_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = w.Window()
    window.allocate(10_000, "\x1b]0;gotcha\x07/Relu")
    for by in ("layer", "op"):
        assert not set("\x1b\x07") & set(printed(capsys, recording(tmp_path, window.done()), "--by", by))


def test_what_has_no_shape_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = w.Window()
    window.allocate(10_000, "dense/Relu")
    text = printed(capsys, recording(tmp_path, window.done()), "--by", "shape")
    assert ["no", "shape", "known", "activations"] in [line.split()[:4] for line in text.splitlines()]


def test_why_tells_who_holds_most(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path, w.step().done())
    assert main(["why", path]) == 0
    text = capsys.readouterr().out
    part = next(part for part in text.split("\n\n") if part.startswith("Who holds it"))
    assert "At the peak of a step of train_step, 52.0 MiB were in use in the pool of GPU:0: optimizer 46%," in " ".join(
        part.split()
    )
    assert [line.split()[0] for line in part.splitlines()[-3:]] == ["down", "up", "optimizer"]
    assert main(["why", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["holders"]["peak"] == 52 * 2**20 + 256


def test_compare_tells_which_layers_hold_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [recording(tmp_path / "a", w.step().done()), recording(tmp_path / "b", w.step(rows=1408).done())]
    assert main(["compare", *paths]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "The peaks of a step (52.0 MiB and 56.5 MiB) differ by layer: " in text
    assert "up +1.5 MiB (20.0 MiB before)" in text and "input +1.5 MiB (4.0 MiB before)" in text
    assert main(["compare", *paths, "--json"]) == 0
    told = {row["name"]: row["difference"] for row in json.loads(capsys.readouterr().out)["holders"]}
    assert told["up"] == 3 * 2**19
