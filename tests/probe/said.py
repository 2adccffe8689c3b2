"""The text that the user reads about a build that failed, and about readings that the hook does not trust."""

import json
from typing import Any

import msgspec

from tfmemtop.events import Probe, Unbuilt, decode_event
from tfmemtop.findings.probe import probe_text, unbuilt_remedy, unbuilt_text
from tfmemtop.probe.cache import Built


def said(built: Built) -> tuple[str, str]:
    """Return the reason why there is no probe, and the remedy."""
    unbuilt = msgspec.convert(built.unbuilt, Unbuilt)
    return unbuilt_text(unbuilt, "the probe"), unbuilt_remedy(unbuilt)


def said_by_hook(sent: dict[str, Any]) -> str:
    """Return the text that reports what is wrong, for a message that the hook has *sent*."""
    event = decode_event(json.dumps({"t": 0.0, **sent}).encode())
    assert isinstance(event, Probe)
    return probe_text(event)
