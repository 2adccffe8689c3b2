"""``tfmemtop why``: the verdict first, then the reasons, what to do, and the questions that the run raises."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import streams as s
from tests.patience import PATIENCE_S
from tests.ui.recorded import RECORDINGS
from tfmemtop.cli.main import main
from tfmemtop.events import Event, RunEnd, recording
from tfmemtop.findings.run_review import review
from tfmemtop.findings.verdict import say_verdict, verdict
from tfmemtop.reports.answers import QUESTIONS
from tfmemtop.reports.why import page, to_json
from tfmemtop.reports.why_text import earlier, pasted

ALL = sorted(RECORDINGS.rglob("*.jsonl"))


def lines(name: str, run: int | None = None) -> list[str]:
    path = RECORDINGS / f"{name}.jsonl"
    return page(review(recording.read(path).events(), run), str(path))


def parts(name: str, run: int | None = None) -> list[str]:
    """Return the report's parts, each as one line."""
    return [" ".join(part.split()) for part in "\n".join(lines(name, run)).split("\n\n")]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_report_begins_with_two_lines_and_names_no_key(path: Path) -> None:
    report = page(review(recording.read(path).events()), str(path))
    verdict = report[: report.index("")]
    assert 1 <= len(verdict) <= 2 and max(map(len, verdict)) <= 96 and verdict[-1].endswith(".")
    assert report[len(verdict) + 1].startswith("Run ")
    text = "\n".join(report)
    assert not re.search(r"\[[A-Z]\]|\bkey [A-Z]\b|\[Enter\]", text)
    assert not re.search(r"  \n|\n\n\n", text + "\n")


@pytest.mark.parametrize(
    ("name", "run", "said"),
    [
        ("cpu-oom", None, "Out of memory: AddV2 asked for 16.0 MiB. Stopped by the limit of 512.0 MiB that you set."),
        (
            "cpu-demo",
            None,
            "Run 2 ended with exit code 0. At most 770.9 MiB were in use in a pool of 900.0 MiB. Nothing needs to be "
            "changed.",
        ),
        (
            "h200-settings",
            1,
            "Run 1 ended by SIGTERM. At most 273.7 MiB were in use. GPU 0: growth is off, so TensorFlow took 137.5 GiB "
            "of the card's 140.4 GiB at once.",
        ),
        (
            "h100-resnet-xla",
            None,
            "at most 5.3 GiB were in use in a pool of 14.0 GiB. GPU 0: the pool held 14.0 GiB, 8.7 GiB more than",
        ),
        (
            "leaks/growing-batch-eager",
            None,
            "Out of memory: Mul at growing_eager.py:10 asked for 46.9 MiB. The pool is fragmented: 59.5 MiB of it were "
            "free, but no free chunk was larger than 32.0 MiB.",
        ),
        ("seeds/growth-then-limit", None, "and the limit silently dropped growth."),
        ("seeds/cut-up", None, "Out of memory: Fill at cut_up.py:13 asked for 200.0 MiB. The pool is fragmented:"),
    ],
)
def test_the_verdict(name: str, run: int | None, said: str) -> None:
    assert said in parts(name, run)[0]


def test_where_nothing_was_read_the_verdict_says_why() -> None:
    def said(*events: Event) -> str:
        found = verdict(review([s.session(), s.run(), s.process(0.3, 100), s.alive(1.0, 100), *events, ended]))
        assert found is not None
        return say_verdict(found)

    ended = RunEnd(t=6.0, run=1, exit_code=0, signal=None)
    assert said() == "Run 1 ended with exit code 0. tfmemtop saw no process use TensorFlow."
    assert said(s.hook(1.1, 100)).endswith("only in a BFC pool: add --cpu-pool SIZE.")
    assert "At most 200.0 MiB were in use" in said(s.hook(1.1, 100), s.allocator(5.0, 100, 200 * s.MIB, name="CPU:0"))


def test_a_verdict_that_is_too_long_ends_with_a_whole_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = f"A fact of {'many ' * 14}words."
    monkeypatch.setattr("tfmemtop.findings.verdict._ways", lambda _: [" ".join([sentence] * 4)])
    found = verdict(review([s.session(), s.run()]))
    assert found is not None and say_verdict(found) == f"{sentence} {sentence}"


def test_the_parts_come_in_the_order_of_their_weight() -> None:
    report = "\n".join(lines("seeds/growth-too-late"))
    places = [report.index(title) for title in ("\nWhy\n", "\nWhat to do\n", "\nAlso found\n", "\nHow does set_memory")]
    assert places == sorted(places)
    (command,) = [part for part in parts("seeds/growth-too-late") if part.startswith("tfmemtop --growth on -- ")]
    assert command.startswith("tfmemtop --growth on -- /opt/torch/.venv/bin/python3")


def test_a_peak_is_not_called_what_is_needed_where_less_may_do() -> None:
    report = " ".join(parts("cpu-kernel-1"))
    assert "257.6 MiB in use" in report and "needed" not in report and "Under less than 252.0 MiB" in report


def test_an_error_tells_what_its_omens_told() -> None:
    text = "\n".join(lines("cpu-oom"))
    assert "No room" not in text and "of the limit. The peak" not in text
    assert "At 16 s: " in text
    assert "(tfmemtop help holders)" in " ".join(text.split()), "it says how to see who held the memory"


def test_only_the_questions_that_the_run_raises_are_answered() -> None:
    cpu = list(lines("cpu-demo"))
    (asked,) = [line for line in cpu if line.endswith("?")]
    assert "efficiently" in asked and "GPU" not in asked, "on a machine without a GPU nobody asks for GPU memory"
    reserved = " ".join(parts("seeds/default"))
    assert all(title in reserved for title in QUESTIONS.values())


def test_other_runs_of_the_recording_are_mentioned() -> None:
    assert f"Runs 1 to 4 are in this recording too: tfmemtop why {RECORDINGS}/h200-runs.jsonl:4" in lines("h200-runs")
    assert not [line for line in lines("h200-runs", 1) if "in this recording too" in line]
    assert earlier(2, "my run.jsonl") == "Run 1 is in this recording too: tfmemtop why 'my run.jsonl:1'"


CODE = "import sys\nfor argument in sys.argv[1:]:\n    print(repr(argument))\n"


@pytest.mark.programs
@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("width", [20, 96])
def test_a_command_survives_being_pasted(shell: str, width: int) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    arguments = ["--batch", "640", "it's", "", "two  blanks", 'a "quoted" $HOME', "last\n  line"]
    text = "\n".join(pasted([sys.executable, "-c", CODE, *arguments], width))
    done = subprocess.run([shell], input=text, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.splitlines() == list(map(repr, arguments))


def test_a_long_command_is_broken_between_its_words() -> None:
    assert pasted(["tfmemtop", "--growth", "on", "--", "python3", "train.py"], 30) == [
        "tfmemtop --growth on -- \\",
        "    python3 train.py",
    ]


@pytest.mark.programs
def test_what_a_terminal_must_not_get_can_be_pasted_all_the_same() -> None:
    (line,) = pasted(["printf", "%s", "a\tb\x1b[31m'é\u202e"], 96)
    assert line.isascii() and line.isprintable()
    done = subprocess.run(["bash"], input=line, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout == "a\tb\x1b[31m'é\u202e"


def test_a_script_given_as_an_argument_keeps_its_lines() -> None:
    report = lines("h200-two-cards")
    first = next(number for number, line in enumerate(report) if line.startswith("tfmemtop --growth on"))
    assert report[first].endswith("python3 -c '")
    assert report[first + 1 : first + 3] == ["import tensorflow as tf, time", "s=tf.distribute.MirroredStrategy()"]


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    name = str(RECORDINGS / "seeds" / "growth-too-late.jsonl")
    assert main(["why", name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["run", "placement", "verdict", "findings", "limit", "holders"] and told["holders"] is None
    assert told["run"] == 1 and told["verdict"] == " ".join(parts("seeds/growth-too-late")[0].split())
    assert [(found["key"], found["severity"]) for found in told["findings"]] == [
        ("asked_too_late", "warning"),
        ("whole_card", "warning"),
    ]
    assert "too late" in told["findings"][0]["text"]


def test_text_is_printed_and_a_run_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    name = str(RECORDINGS / "h200-settings.jsonl")
    assert main(["why", f"{name}:1"]) == 0
    assert capsys.readouterr().out.startswith("Run 1 ended by SIGTERM.")
    assert main(["why", f"{name}:7"]) == 2
    assert "holds no run 7" in capsys.readouterr().err


@pytest.mark.long
def test_json_of_every_recording_has_sentences() -> None:
    for path in ALL:
        for found in to_json(review(recording.read(path).events()))["findings"]:
            assert found["text"].endswith("."), found
