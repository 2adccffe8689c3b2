"""What an exporter says to its engine, each in a line of its own: a sign, and for the last two an error's text."""

ALIVE = b"."
TROUBLE = b"!"
"""Why the file cannot be written; without a text it can be again."""
FAILED = b"?"
"""Why the exporter ends."""

BEAT_S = 5.0
"""Seconds between two signs of life."""
