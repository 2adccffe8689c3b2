"""Scripts whose smallest limits are predicted and then proved on a GPU: some of the CPU's, and Keras's ResNet-50."""

from pathlib import Path

from tests.tools.corpus.predicted import SCRIPTS as ON_THE_CPU

_HERE = Path(__file__).parent
_RESNET = str(_HERE / "resnet50.py")
_TAKEN = ("keras_cnn", "transformer", "v1_session", "shapes", "leak", "eager", "cut_up", "demo")

SCRIPTS: dict[str, list[str]] = {
    **{name: ON_THE_CPU[name] for name in _TAKEN},
    "mirrored": [str(_HERE / "mirrored.py")],
    "resnet50": [_RESNET, "off"],
    "resnet50_xla": [_RESNET, "auto"],
}
"""Path and arguments of each script."""
