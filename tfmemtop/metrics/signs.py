"""The messages from an exporter to its engine. Each is a line: a sign, and for the last two an error's text."""

ALIVE = b"."
TROUBLE = b"!"
"""The file cannot be written, and the text is the reason. Without a text: the file can be written again."""
FAILED = b"?"
"""The exporter ends, and the text is the reason."""

BEAT_S = 5.0
"""Seconds between two signs of life."""
