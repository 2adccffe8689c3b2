"""Settings that were requested and are not in effect: each rule where it applies, and where it just does not."""

from tests import streams as s
from tests.findings.situations import (
    actions,
    asked_growth,
    asked_limits,
    asked_visible,
    begin,
    effective,
    found,
    initialised,
    wrote,
)
from tests.streams import GIB
from tfmemtop import events
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.names import Callsite
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules.settings import (
    AskedTooLate,
    CallRefused,
    GrowthDiffers,
    GrowthDropped,
    GrowthOverridden,
    GrowthWordIgnored,
)
from tfmemtop.settings import Settings

TOO_LATE = "RuntimeError: Physical devices cannot be modified after being initialized"
REFUSED = "ValueError: Cannot set memory growth on device when virtual devices configured"
LIMIT = (4 * GIB,)


def test_growth_asked_for_too_late_names_the_line() -> None:
    late = asked_growth(error=TOO_LATE, line=40)
    finding = found(begin(), effective(False), late)[AskedTooLate]
    assert finding.pid == 100 and finding.request == late
    assert actions(finding) == [Action.GROWTH_ON]
    # What made the devices before is not known here, as in a fork. The text says so.
    assert finding.made_at is None and "not known" in finding.said.explanation
    known = found(begin(), initialised(), effective(False), late)[AskedTooLate]
    assert known.made_at == Callsite("/home/ada/train.py", 9, "x = tf.ones(3)")
    assert "train.py:40 up, before train.py:9" in known.said.explanation
    # It is no matter where growth is on all the same.
    assert found(begin(Settings(growth="on")), effective(True), late) == []


def test_a_limit_that_comes_too_late_is_told_as_well() -> None:
    late = asked_limits(*LIMIT, error="RuntimeError: Virtual devices cannot be modified after being initialized")
    finding = found(begin(), initialised(), effective(True), late)[AskedTooLate]
    assert finding.remedies[0] is Action.SET_LIMIT and finding.remedies[1].text.endswith("up, above train.py:9")


def test_growth_dropped_by_a_later_limit() -> None:
    calls = [asked_growth(line=15), asked_limits(*LIMIT, line=18)]
    finding = found(begin(), *calls, effective(False, 4 * GIB))[GrowthDropped]
    assert (finding.growth.line, finding.limit.line, finding.limits) == (15, 18, (4 * GIB,))
    # The user may have put it back.
    assert found(begin(Settings(growth="on")), *calls, effective(True, 4 * GIB)) == []
    # Before TensorFlow has initialised its devices nothing is dropped yet.
    assert found(begin(), *calls) == []
    # A limit on the CPU drops none.
    calls = [asked_growth(), asked_limits(None, None, name="CPU:0")]
    assert GrowthDropped not in found(begin(), *calls, effective(True))


def test_growth_refused_where_a_limit_is() -> None:
    finding = found(begin(), asked_limits(*LIMIT), asked_growth(error=REFUSED))[CallRefused]
    assert finding.request.line == 12


def test_growth_for_no_device_and_any_other_refusal() -> None:
    call = events.Call.SET_MEMORY_GROWTH
    nothing = s.requested(1.5, call, None, growth=True, error="ValueError: Unrecognized device: True")
    finding = found(begin(), nothing)
    assert CallRefused in finding
    other = asked_visible("GPU:7", of=None, error="ValueError: what?")
    assert found(begin(), other)[CallRefused].request == other


def test_growth_that_differs_between_gpus() -> None:
    one = asked_growth()
    raised = wrote("Traceback\r\nValueError: Memory growth cannot differ between GPU devices\r\n")
    finding = found(begin(gpus=2), one, raised)[GrowthDiffers]
    assert finding.severity is Severity.ERROR and finding.asked == ("GPU:0",)
    # The script may still ask for growth on the other GPUs.
    assert found(begin(gpus=2), one) == []


DIFFERS = "ValueError: Memory growth cannot differ between GPU devices"


def test_growth_that_differs_is_found_where_the_script_says_nothing_of_it() -> None:
    one = asked_growth()
    refused = initialised(20, "model.fit(x)", DIFFERS)
    finding = found(begin(gpus=2), one, refused)[GrowthDiffers]
    assert finding == GrowthDiffers(("GPU:0",), Callsite("/home/ada/train.py", 20))
    # The finding ends once the devices are made after all, although the output still contains the message.
    printed = wrote(DIFFERS)
    assert GrowthDiffers not in found(begin(gpus=2), one, printed, refused, initialised(t=2.0), effective(True))


def environment(word: str) -> events.Environment:
    return events.Environment(t=2.5, pid=100, variables={"TF_FORCE_GPU_ALLOW_GROWTH": word})


def test_the_environment_overrides_the_script() -> None:
    grow = asked_growth()
    finding = found(begin(), grow, effective(False))[GrowthOverridden]
    assert finding == GrowthOverridden(grow, is_on=False, word=None, sure=False)
    known = found(begin(), grow, effective(False), environment("false"))[GrowthOverridden]
    assert known == GrowthOverridden(grow, is_on=False, word="false", sure=True)


def test_the_environment_that_the_script_had_is_known_without_asking() -> None:
    grow = asked_growth()
    made = initialised(TF_FORCE_GPU_ALLOW_GROWTH="false")
    finding = found(begin(), grow, made, effective(False))[GrowthOverridden]
    assert finding.word == "false"
    # A variable that is not set is not named as the reason.
    other = found(begin(), grow, initialised(), effective(False))[GrowthOverridden]
    assert other.word is None and other.sure
    ignored = found(begin(), initialised(TF_FORCE_GPU_ALLOW_GROWTH="1"), effective(False))[GrowthWordIgnored]
    assert ignored.word == "1" and actions(ignored) == [Action.SET_GROWTH]
    # The script has corrected the variable before TensorFlow read it.
    put_right = initialised(TF_FORCE_GPU_ALLOW_GROWTH="true")
    assert GrowthWordIgnored not in found(begin(), environment("1"), put_right, effective(True))


def test_what_the_user_chose_in_tfmemtop_overrides_without_a_word() -> None:
    grow = asked_growth()
    assert GrowthOverridden not in found(begin(Settings(growth="off")), grow, effective(False))
    # Growth on a GPU that TensorFlow does not use shows nothing about the GPU that it uses.
    assert GrowthOverridden not in found(begin(gpus=2), asked_growth("GPU:1"), effective(False))


def test_a_word_that_tensorflow_does_not_take() -> None:
    assert found(begin(), environment("1"))[GrowthWordIgnored].word == "1"
    logged = wrote('E0000 The TF_FORCE_GPU_ALLOW_GROWTH environment variable is set but could not be parsed: "yes".')
    assert found(begin(), logged)[GrowthWordIgnored].word == "yes"
    chosen = Settings(environment={"TF_FORCE_GPU_ALLOW_GROWTH": "True"})
    assert found(begin(chosen))[GrowthWordIgnored].word == "True"
    assert found(begin(), environment("true")) == []


def test_a_word_that_another_process_of_the_run_had_is_named() -> None:
    other = [s.process(1.2, 101, ppid=100), s.hook(1.3, 101)]
    logged = wrote('E0000 The TF_FORCE_GPU_ALLOW_GROWTH environment variable is set but could not be parsed: "yes"')
    assert found(begin(), other, environment("true"), logged)[GrowthWordIgnored].word == "yes"
    cut = wrote("E0000 The TF_FORCE_GPU_ALLOW_GROWTH environment variable is set but could not be parsed")
    assert found(begin(), other, environment("true"), cut)[GrowthWordIgnored].word is None
    others = events.Environment(t=2.5, pid=101, variables={"TF_FORCE_GPU_ALLOW_GROWTH": "1"})
    assert found(begin(), other, environment("true"), others)[GrowthWordIgnored].word == "1"


def test_what_another_run_wrote_is_not_this_ones() -> None:
    raised = wrote("ValueError: Memory growth cannot differ between GPU devices")
    again: list[events.Event] = [events.RunEnd(t=3.0, run=1, exit_code=1, signal=None), s.run(4.0, 2, 200)]
    assert GrowthDiffers not in found(begin(gpus=2), raised, again)
