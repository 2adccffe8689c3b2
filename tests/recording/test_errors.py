"""What is wrong with a recording: each trouble has a text, which names the file and further facts."""

import pytest

from tfmemtop.events.recording import RecordingError, Trouble
from tfmemtop.events.recording.errors import recording_text


@pytest.mark.parametrize("trouble", Trouble)
def test_every_trouble_is_said_of_its_file(trouble: Trouble) -> None:
    said = recording_text(RecordingError(trouble, "/tmp/{x}.tfm", "no {space}", 3))
    assert "/tmp/{x}.tfm" in said and "None" not in said and "\n" not in said
