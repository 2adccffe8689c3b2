"""``tfmemtop why``: the verdict first, then the reasons, what to do, and the questions that the run raises."""

import json
import re
import shutil
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from tests import streams as s
from tests.commands import printed_by, refused_by
from tests.field.judging import above_whole
from tests.starting import ran
from tests.ui.shown import RECORDINGS
from tfmemtop.events import Event, Level, Notice, NoticeKind, Output, RunEnd, ScriptError, recording
from tfmemtop.findings.cause import LONGEST, Cause, Key
from tfmemtop.findings.judgement import findings, judged
from tfmemtop.findings.proposed_limit import suggested_limit
from tfmemtop.findings.review import RunReview, review, verdict
from tfmemtop.findings.rules.out_of_memory import AllocationFailed
from tfmemtop.limits import with_margin
from tfmemtop.reports.answers import CommonQuestion as Question
from tfmemtop.reports.settings import kept_options
from tfmemtop.reports.why import earlier, page, pasted, to_json
from tfmemtop.settings import Settings
from tfmemtop.state.predicted import predicted

ALL = sorted(RECORDINGS.rglob("*.jsonl"))


@lru_cache(maxsize=32)
def reviewed(name: str, run: int | None = None) -> RunReview:
    return review(recording.read(RECORDINGS / f"{name}.jsonl").events(), run)


def lines(name: str, run: int | None = None, *, whole: bool = False) -> list[str]:
    return page(reviewed(name, run), str(RECORDINGS / f"{name}.jsonl"), whole=whole)


def parts(name: str, run: int | None = None, *, whole: bool = False) -> list[str]:
    """Return the report's parts, each as one line."""
    return [" ".join(part.split()) for part in "\n".join(lines(name, run, whole=whole)).split("\n\n")]


def figures_agree(seen: RunReview) -> None:
    """Check that what was found has the time of its figures, and that a limit after a replay is the replay's."""
    run = seen.state.run
    assert run is not None
    for held in seen.held:
        assert 0 <= held.first <= held.last + 1
        if isinstance(held.finding, AllocationFailed):
            assert run.started + held.first == pytest.approx(held.finding.anatomy.t)
    limit = suggested_limit(seen.state)
    if limit is None or limit.seen is None or limit.divided:
        return
    for view in predicted(seen.state):
        ends = view.ends(limit.growth != "off")
        assert ends is not None and ends.surely is not None
        assert (limit.size, limit.figure) == (with_margin(ends.surely), ends.at_least)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_report_begins_with_two_lines_fits_a_screen_and_names_no_key(path: Path) -> None:
    seen = review(recording.read(path).events())
    report = page(seen, str(path))
    first = report[: report.index("")]
    assert 1 <= len(first) <= 2 and max(map(len, first)) <= 96 and first[-1][-1] in ".…"
    assert report[len(first) + 1].startswith("Run ") and len(report) <= 24
    for text in ("\n".join(report), "\n".join(page(seen, str(path), whole=True))):
        assert not re.search(r"\[[A-Z]\]|\bkey [A-Z]\b|\[Enter\]", text)
        assert not re.search(r"  \n|\n\n\n", text + "\n")
        assert not [*above_whole(" ".join(text.split()))] and ": . " not in text
    cause, told = verdict(seen), to_json(seen)
    assert cause is not None and not [one for one in cause.evidence if one and one in cause.text], "said once"
    figures_agree(seen)
    assert told["verdict"]["cause"] in set(Key) and len(told["verdict"]["text"]) <= LONGEST
    assert all(found["text"].endswith(".") for found in told["findings"])


@pytest.mark.parametrize(
    ("name", "run", "key", "said"),
    [
        ("cpu-oom", None, Key.LIMIT_TOO_SMALL, "AddV2 asked for 16.0 MiB"),
        ("cpu-demo", None, Key.NONE, "at most 770.9 MiB in use, reached after 1 min 4 s; "),
        ("h200-two-cards", None, Key.NONE, "466.2 MiB in use on one card"),
        ("h200-settings", 1, Key.RESERVED, "took 137.5 GiB of the card's 140.4 GiB"),
        ("settings/worker", None, Key.OTHERS, "two processes of this run fill the card"),
        ("settings/pytorch-full", None, Key.OTHERS, "Other processes held 138.7 GiB of the card"),
        ("h100-resnet-xla", None, Key.NONE, "at most 5.3 GiB in use"),
        ("leaks/growing-batch-eager", None, Key.LIMIT_TOO_SMALL, "in use: 18 tensors of [48000,256] 843.8"),
        ("leaks/leak", None, Key.TENSORS_KEPT, "losses"),
        ("leaks/h100-leak", None, Key.TENSORS_KEPT, "trainer.history"),
        ("leaks/too-large-a-model", None, Key.LIMIT_TOO_SMALL, "loading.py:5"),
        ("leaks/batch-halved", None, Key.LIMIT_TOO_SMALL, "run went on after memory ran out"),
        ("leaks/one-hot-labels", None, Key.LIMIT_TOO_SMALL, "one_hot 128.0. Use integers in place"),
        ("leaks/weight-snapshots", None, Key.TENSORS_KEPT, "`callbacks[*].snapshots[*].weights` keeps 150 tensors"),
        ("leaks/thumbnails-between", None, Key.FRAGMENTATION, "mosaic.py:38: The pool is fragmented by 60 tensors"),
        ("leaks/h200-tape", None, Key.TAPE_OPEN, "A GradientTape holds 507.2 MiB"),
        ("leaks/session-store", None, Key.TENSORS_KEPT, "`store._by_user[*].past[*]` keeps 160 tensors"),
        ("leaks/slow-writer", None, Key.TENSORS_KEPT, "At the end the run waited"),
        (
            "leaks/longer-loop",
            None,
            Key.STEP_LARGER,
            "keeps the results of 85 rounds of a loop for the gradient (before, at most 64): 292.5 MiB",
        ),
        ("leaks/whole-test-set", None, Key.LIMIT_TOO_SMALL, "52 steps before used at most 50.8 MiB"),
        ("seeds/growth-then-limit", None, Key.SETTING, "growth_then_limit.py:10"),
        ("seeds/growth-too-late", None, Key.SETTING, "growth_too_late.py:11"),
        ("seeds/cut-up", None, Key.FRAGMENTATION, "cut_up.py:13 asked for 200.0 MiB"),
    ],
)
def test_the_verdict(name: str, run: int | None, key: Key, said: str) -> None:
    seen = reviewed(name, run)
    found, (at_the_end, _) = verdict(seen), judged(seen.state, findings(seen.state), going=seen.running)
    assert found is not None and found.key is key and said in found.text
    assert parts(name, run)[0] == found.text
    assert at_the_end.advised == found.text, "the screen and compare, which know the last moment alone, say the same"


def test_what_was_not_larger_than_before_is_not_compared() -> None:
    """Larger batches found no room before, or the smaller request was another layer's, or came after."""
    for name in ("batch-halved", "one-hot-labels"):
        report = " ".join(parts(f"leaks/{name}", whole=True))
        assert "before, at most" not in report and "worked before" not in report and "limit of ~" not in report
    assert "one_hot [16,40,30000] 128.0 MiB" in " ".join(parts("leaks/one-hot-labels")), (
        "it was in use as the step failed"
    )
    alone = " ".join(parts("leaks/whole-test-set"))
    assert "52 steps before used at most 50.8 MiB" in alone and "Use a smaller batch or input" in alone


def test_copies_of_weights_are_no_gradients() -> None:
    report = " ".join(parts("leaks/weight-snapshots"))
    assert "add the gradients" not in report and "tensor.numpy()" in report


def test_who_keeps_what_lies_between_the_pieces_of_a_fragmented_pool() -> None:
    report = " ".join(parts("leaks/thumbnails-between"))
    assert "Between the free chunks lies what `album.thumbnails` in main() keeps: 60 tensors, 45.0 MiB." in report


def ended_after(*events: Event, code: int | None = 0) -> Cause:
    """Return the verdict on a run of *events* that ended with exit code *code*."""
    ended = RunEnd(t=6.0, run=1, exit_code=code, signal=None)
    found = verdict(review([s.session(), s.run(), s.process(0.3, 100), s.alive(1.0, 100), *events, ended]))
    assert found is not None
    return found


def test_where_nothing_was_read_the_verdict_says_why() -> None:
    assert ended_after().key is Key.NONE and "no process use TensorFlow" in ended_after().text
    assert "--cpu-pool" in ended_after(s.hook(1.1, 100)).text
    read = ended_after(s.hook(1.1, 100), s.allocator(5.0, 100, 200 * s.MIB, name="CPU:0"))
    assert read.key is Key.NONE and read.bytes == 200 * s.MIB and "200.0 MiB in use, reached after 4 s" in read.text


def test_who_has_given_the_cpu_a_pool_is_not_told_to_do_so() -> None:
    run = s.run(settings=Settings(cpu_pool=512 * s.MIB))
    begun = [s.session(), run, s.process(0.3, 100), s.alive(1.0, 100), s.hook(1.1, 100)]
    going = verdict(review(begun))
    assert going is not None and "has not initialised its devices" in going.text and not going.remedies
    ended = verdict(review([*begun, RunEnd(t=6.0, run=1, exit_code=0, signal=None)]))
    assert ended is not None and "was read" in ended.text and not ended.remedies


def test_a_run_that_failed_for_another_reason_is_told_with_it() -> None:
    """The script's own error is the best evidence, then its last line; else only how it ended is known."""
    read = s.hook(1.1, 100), s.allocator(5.0, 100, 200 * s.MIB, name="CPU:0")
    error = ScriptError(t=5.5, pid=100, kind="ValueError", message="no such file", file="/a/train.py", line=7)
    printed = Output(t=5.4, run=1, text="loading\nKeyError: 'x'\n")
    with_error = ended_after(*read, printed, error, code=1)
    assert with_error.key is Key.NOT_MEMORY
    assert "ValueError at train.py:7: no such file." in with_error.text
    assert "KeyError: 'x'" in ended_after(*read, printed, code=1).text
    echo = Output(t=5.5, run=1, text="a^C = 2\n^C\n")
    assert "a^C = 2" in ended_after(*read, echo, code=1).text, "only what the terminal itself wrote is left out"
    alone = ended_after(*read, code=1)
    assert alone.key is Key.NOT_MEMORY and "200.0 MiB" in alone.text
    unseen = ended_after(*read, code=None)
    assert unseen.key is Key.NONE and "not known" in unseen.text, (
        "of a process of another's, its parent learns the code"
    )
    assert ended_after(s.hook(1.1, 100), code=1).key is Key.UNKNOWN, "nothing was read of its memory"
    too_much = ScriptError(t=5.5, pid=100, kind="MemoryError", message="", file="/a/train.py", line=9)
    host = ended_after(*read, too_much, code=1)
    assert host.key is Key.HOST_GROWTH and "was not the cause" not in host.text and "train.py:9" in host.text
    assert "200.0 MiB" in " ".join(host.evidence)


def test_the_parts_come_in_the_order_of_their_weight() -> None:
    report = "\n".join(lines("seeds/growth-too-late", whole=True))
    titles = ("\nWhat to do\n", "\nAll memory taken?", "\nFound\n", "\nHow does set_memory")
    places = [report.index(title) for title in titles]
    assert places == sorted(places)
    assert "\nFound\n" not in "\n".join(lines("seeds/growth-too-late"))
    assert any(part.startswith("tfmemtop fit -- /home/ada/venv/bin/python3") for part in parts("cpu-oom"))


def test_a_peak_is_not_called_what_is_needed_where_less_may_do() -> None:
    report = " ".join(parts("cpu-kernel-1", whole=True))
    assert "257.6 MiB in use" in report and "needed" not in report and "less than 252.0 MiB" in report


def test_an_error_tells_what_its_omens_told() -> None:
    text = "\n".join(lines("cpu-oom", whole=True))
    assert "No room" not in text and "of the limit. The peak" not in text
    assert "At 16 s: " in text
    assert "(tfmemtop help holders)" in " ".join(text.split()), "it says how to see who held the memory"


RUNS = {"seeds/default": len(Question), "cpu-demo": 2}
"""How many questions the report answers for a run: on a GPU, and on the CPU."""


def test_each_question_has_a_line_and_those_that_the_run_raises_a_whole_answer() -> None:
    short = {name: [line for line in lines(name) if re.match(r"[A-Z][-\w ,]+\?  ", line)] for name in RUNS}
    assert {name: len(found) for name, found in short.items()} == RUNS
    (asked,) = [line for line in lines("cpu-demo", whole=True) if line.endswith("?")]
    assert "efficiently" in asked
    reserved = " ".join(parts("seeds/default", whole=True))
    assert all(question.value in reserved for question in Question)


def test_other_runs_of_the_recording_are_mentioned() -> None:
    assert f"Runs 1 to 4 are in this recording too: tfmemtop why {RECORDINGS}/h200-runs.jsonl:4" in lines("h200-runs")
    assert not [line for line in lines("h200-runs", 1) if "in this recording too" in line]
    first = page(reviewed("h200-runs", 1), "yc2cq", 1)
    assert "More: tfmemtop why --long yc2cq:1" in first, "the longer report is on the same run"
    assert earlier(2, "my run.jsonl") == "Run 1 is in this recording too: tfmemtop why 'my run.jsonl:1'"


def test_a_recording_that_stopped_before_the_run_says_why() -> None:
    why = "recording to a.jsonl has stopped: less than 128 MiB are free on the disk"
    stopped = Notice(t=2.0, key="recording", level=Level.WARNING, kind=NoticeKind.RECORDING_ENDED, detail=why)
    told = page(review([s.session(), s.run(), stopped]), "a.jsonl")
    assert "less than 128 MiB are free on the disk" in " ".join(told)


def test_a_run_whose_exit_code_is_not_known_is_not_said_to_be_cut_short() -> None:
    pool = s.allocator(5.0, 100, s.MIB, name="CPU:0")
    begun = [s.session(), s.run(), s.process(0.3, 100), s.hook(1.1, 100), pool]
    told = [
        " ".join(page(review([*begun, RunEnd(t=6.0, run=1, exit_code=code, signal=None)]), "a.jsonl"))
        for code in (None, 1)
    ]
    assert ["was cut short, so" in each for each in told] == [False, True]


CODE = "import sys\nfor argument in sys.argv[1:]:\n    print(repr(argument))\n"


@pytest.mark.programs
@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("width", [20, 96])
def test_a_command_survives_being_pasted(shell: str, width: int) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    arguments = ["--batch", "640", "it's", "", "two  blanks", 'a "quoted" $HOME', "last\n  line"]
    text = "\n".join(pasted([sys.executable, "-c", CODE, *arguments], width))
    done = ran([shell], stdin=text, check=True)
    assert done.stdout.splitlines() == list(map(repr, arguments))


def test_a_long_command_is_broken_between_its_words() -> None:
    assert pasted(["tfmemtop", "--growth", "on", "--", "python3", "train.py"], 30) == [
        "tfmemtop --growth on -- \\",
        "    python3 train.py",
    ]


def test_a_command_to_paste_keeps_the_gpus_that_were_chosen_also_none() -> None:
    assert kept_options(Settings(gpus=(2, 0)), ()) == ["--gpus", "2,0"]
    assert kept_options(Settings(gpus=()), ()) == ["--gpus", "none"]
    assert kept_options(Settings(), ()) == []


@pytest.mark.programs
def test_what_a_terminal_must_not_get_can_be_pasted_all_the_same() -> None:
    (line,) = pasted(["printf", "%s", "a\tb\x1b[31m'é\u202e"], 96)
    assert line.isascii() and line.isprintable()
    done = ran(["bash"], stdin=line, check=True)
    assert done.stdout == "a\tb\x1b[31m'é\u202e"


def test_a_script_given_as_an_argument_keeps_its_lines() -> None:
    report = lines("h200-two-cards", whole=True)
    first = next(number for number, line in enumerate(report) if line.startswith("tfmemtop --growth on"))
    assert report[first].endswith("python3 -c '")
    assert report[first + 1 : first + 3] == ["import tensorflow as tf, time", "s=tf.distribute.MirroredStrategy()"]


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    name = str(RECORDINGS / "seeds" / "growth-too-late.jsonl")
    told = json.loads(printed_by(capsys, "why", name, "--json"))
    assert (
        list(told) == ["run", "placement", "verdict", "findings", "limit", "phases", "holders"]
        and told["holders"] is None
    )
    assert told["run"] == 1
    verdict = told["verdict"]
    assert list(verdict) == ["cause", "holder", "bytes", "count", "remedy", "text"]
    assert (verdict["cause"], verdict["holder"]) == ("setting_without_effect", None) and "growth" in verdict["remedy"]
    assert verdict["text"] == parts("seeds/growth-too-late")[0]
    assert [(found["key"], found["severity"]) for found in told["findings"]] == [
        ("asked_too_late", "warning"),
        ("whole_card", "warning"),
    ]
    assert "too late" in told["findings"][0]["text"]


def test_text_is_printed_and_a_run_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    name = str(RECORDINGS / "h200-settings.jsonl")
    assert "\n\nRun 1, train.py" in printed_by(capsys, "why", f"{name}:1")
    assert "holds no run 7" in refused_by(capsys, "why", f"{name}:7")
