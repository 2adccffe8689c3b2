"""Settings asked for and not had: each rule where it holds, and where it just does not."""

from tests import streams as s
from tests.streams import GIB
from tests.verdicts.situations import asked, begin, effective, found, initialised, wrote
from tfmemtop import events
from tfmemtop.settings import Settings

TOO_LATE = "RuntimeError: Physical devices cannot be modified after being initialized"
REFUSED = "ValueError: Cannot set memory growth on device when virtual devices configured"
LIMIT = ("set_logical_device_configuration", "GPU:0, [(memory_limit=4096)]")


def test_growth_asked_for_too_late_names_the_line() -> None:
    late = asked("set_memory_growth", "GPU:0, True", TOO_LATE, line=40)
    finding = found(begin(), effective(False), late)["asked-too-late"]
    assert "train.py:40: set_memory_growth(GPU:0, True) came too late" in finding.text
    assert "[G]" in finding.remedy and any("set_memory_growth(gpu, True)" in line for line in finding.code)


def test_growth_asked_for_too_late_names_what_made_the_devices_before() -> None:
    late = asked("set_memory_growth", "GPU:0, True", TOO_LATE, line=40)
    finding = found(begin(), initialised(), effective(False), late)["asked-too-late"]
    assert "no effect: train.py:9 (x = tf.ones(3)) had TensorFlow make its devices before" in finding.text
    assert "Move the call of train.py:40 up, before train.py:9" in finding.explanation
    # Of a fork, or in an older recording, nobody knows; then that is said.
    unknown = found(begin(), effective(False), late)["asked-too-late"]
    assert "made its devices already" in unknown.text and "is not known here" in unknown.explanation


def test_a_late_call_is_no_matter_where_growth_is_on_all_the_same() -> None:
    late = asked("set_memory_growth", "GPU:0, True", TOO_LATE)
    assert found(begin(Settings(growth="on")), effective(True), late) == {}


def test_a_limit_that_comes_too_late_is_told_as_well() -> None:
    late = asked(*LIMIT, error="RuntimeError: Virtual devices cannot be modified after being initialized")
    assert "asked-too-late" in found(begin(), effective(True), late)


def test_growth_dropped_by_a_later_limit() -> None:
    calls = [asked("set_memory_growth", "GPU:0, True", line=15), asked(*LIMIT, line=18)]
    finding = found(begin(), *calls, effective(False, 4 * GIB))["growth-dropped"]
    assert finding.text.startswith("train.py:15 asked for growth, train.py:18 set a limit")
    assert "4.0 GiB" in finding.text
    assert any("TF_FORCE_GPU_ALLOW_GROWTH" in line for line in finding.code)


def test_growth_that_the_user_put_back_is_not_dropped() -> None:
    calls = [asked("set_memory_growth", "GPU:0, True"), asked(*LIMIT)]
    assert found(begin(Settings(growth="on")), *calls, effective(True, 4 * GIB)) == {}
    # Before TensorFlow has made its devices nothing is dropped yet.
    assert found(begin(), *calls) == {}


def test_a_limit_on_the_cpu_drops_no_growth() -> None:
    calls = [asked("set_memory_growth", "GPU:0, True"), asked("set_logical_device_configuration", "CPU:0, [(), ()]")]
    assert "growth-dropped" not in found(begin(), *calls, effective(True))


def test_growth_refused_where_a_limit_is() -> None:
    finding = found(begin(), asked(*LIMIT), asked("set_memory_growth", "GPU:0, True", REFUSED))["growth-refused"]
    assert "train.py:12 asked for growth where a limit is set" in finding.text


def test_growth_for_no_device_and_any_other_refusal() -> None:
    finding = found(begin(), asked("set_memory_growth", "True, True", "ValueError: Unrecognized device: True"))
    assert "raised ValueError: Unrecognized device" in finding["growth-of-no-device"].text
    other = asked("set_visible_devices", "[GPU:7]", "ValueError: what?")
    assert "raised ValueError: what?" in found(begin(), other)["refused"].text


def test_growth_that_differs_between_gpus() -> None:
    one = asked("set_memory_growth", "GPU:0, True")
    raised = wrote("Traceback\r\nValueError: Memory growth cannot differ between GPU devices\r\n")
    finding = found(begin(gpus=2), one, raised)["growth-differs"]
    assert finding.level == "error" and "for GPU:0 only" in finding.text
    # The script may yet ask for the others.
    assert found(begin(gpus=2), one) == {}


DIFFERS = "ValueError: Memory growth cannot differ between GPU devices"


def test_growth_that_differs_is_found_where_the_script_says_nothing_of_it() -> None:
    one = asked("set_memory_growth", "GPU:0, True")
    refused = initialised(20, "model.fit(x)", DIFFERS)
    finding = found(begin(gpus=2), one, refused)["growth-differs"]
    assert "could not make its devices at train.py:20, since" in finding.text and "GPU:0 only" in finding.text
    # It ceases once they are made after all, though the words still stand in the output.
    printed = wrote(DIFFERS)
    assert "growth-differs" not in found(begin(gpus=2), one, printed, refused, initialised(t=2.0), effective(True))


def environment(word: str) -> events.Environment:
    return events.Environment(t=2.5, pid=100, variables={"TF_FORCE_GPU_ALLOW_GROWTH": word})


def test_the_environment_overrides_the_script() -> None:
    grow = asked("set_memory_growth", "GPU:0, True")
    finding = found(begin(), grow, effective(False))["growth-overridden"]
    assert "train.py:12 turned growth on, but it is off: most likely" in finding.text
    known = found(begin(), grow, effective(False), environment("false"))["growth-overridden"]
    assert "TF_FORCE_GPU_ALLOW_GROWTH=false in the environment overrides it" in known.text


def test_the_environment_that_the_script_had_is_known_without_asking() -> None:
    grow = asked("set_memory_growth", "GPU:0, True")
    made = initialised(TF_FORCE_GPU_ALLOW_GROWTH="false")
    finding = found(begin(), grow, made, effective(False))["growth-overridden"]
    assert "TF_FORCE_GPU_ALLOW_GROWTH=false in the environment overrides it" in finding.text
    # What is not set is not blamed.
    other = found(begin(), grow, initialised(), effective(False))["growth-overridden"]
    assert "not by the environment" in other.text
    ignored = found(begin(), initialised(TF_FORCE_GPU_ALLOW_GROWTH="1"), effective(False))["growth-word-ignored"]
    assert "TF_FORCE_GPU_ALLOW_GROWTH=1 is ignored" in ignored.text
    assert "[G]" in ignored.remedy and ignored.code == ("export TF_FORCE_GPU_ALLOW_GROWTH=true",)
    # The script has put it right before TensorFlow read it.
    put_right = initialised(TF_FORCE_GPU_ALLOW_GROWTH="true")
    assert "growth-word-ignored" not in found(begin(), environment("1"), put_right, effective(True))


def test_what_the_user_chose_in_tfmemtop_overrides_without_a_word() -> None:
    grow = asked("set_memory_growth", "GPU:0, True")
    assert "growth-overridden" not in found(begin(Settings(growth="off")), grow, effective(False))
    # Growth of a GPU that TensorFlow does not use says nothing of the one that it uses.
    assert "growth-overridden" not in found(begin(gpus=2), asked("set_memory_growth", "GPU:1, True"), effective(False))


def test_a_word_that_tensorflow_does_not_take() -> None:
    assert "TF_FORCE_GPU_ALLOW_GROWTH=1 is ignored" in found(begin(), environment("1"))["growth-word-ignored"].text
    logged = wrote('E0000 The TF_FORCE_GPU_ALLOW_GROWTH environment variable is set but could not be parsed: "yes".')
    assert "growth-word-ignored" in found(begin(), logged)
    chosen = Settings(environment={"TF_FORCE_GPU_ALLOW_GROWTH": "True"})
    assert "=True is ignored" in found(begin(chosen))["growth-word-ignored"].text
    assert found(begin(), environment("true")) == {}


def test_what_another_run_wrote_is_not_this_ones() -> None:
    raised = wrote("ValueError: Memory growth cannot differ between GPU devices")
    again: list[events.AnyEvent] = [events.RunEnd(t=3.0, run=1, exit_code=1, signal=None), s.run(4.0, 2, 200)]
    assert "growth-differs" not in found(begin(gpus=2), raised, again)
