"""Settings asked for and not had: each rule where it holds, and where it just does not."""

from tests import streams as s
from tests.streams import GIB
from tests.verdicts.situations import asked, begin, effective, found, wrote
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


def environment(word: str) -> events.Environment:
    return events.Environment(t=2.5, pid=100, variables={"TF_FORCE_GPU_ALLOW_GROWTH": word})


def test_the_environment_overrides_the_script() -> None:
    grow = asked("set_memory_growth", "GPU:0, True")
    finding = found(begin(), grow, effective(False))["growth-overridden"]
    assert "train.py:12 turned growth on, but it is off: most likely" in finding.text
    known = found(begin(), grow, effective(False), environment("false"))["growth-overridden"]
    assert "TF_FORCE_GPU_ALLOW_GROWTH=false in the environment overrides it" in known.text


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
