"""What the user reads of a build that failed, and of what a hook does not trust."""

import json
from typing import Any

import msgspec

from tfmemtop.events import Probe, Unbuilt, decode_event
from tfmemtop.probe.build import Built
from tfmemtop.words.probe import probe_text, unbuilt_remedy, unbuilt_text


def said(built: Built) -> tuple[str, str]:
    """Why there is no probe, and what helps."""
    unbuilt = msgspec.convert(built.unbuilt, Unbuilt)
    return unbuilt_text(unbuilt, "the probe"), unbuilt_remedy(unbuilt)


def said_by_hook(sent: dict[str, Any]) -> str:
    """What is wrong, of a message as the hook has *sent* it."""
    event = decode_event(json.dumps({"t": 0.0, **sent}).encode())
    assert isinstance(event, Probe)
    return probe_text(event)
