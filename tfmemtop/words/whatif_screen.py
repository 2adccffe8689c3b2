"""The text around the table on the screen of other settings."""

TITLE = "What other settings would do"
TAKE = "take for the next run"
REPLAYING = "The recorded allocations are being replayed under many settings. That takes some seconds."
NOT_ENOUGH = (
    "No allocations have been recorded from the start of this run. The probe records them until the third step; "
    "the table needs all of them."
)
STILL_TRACED = (
    "All allocations of this run are being recorded. The recording ends now, and the table follows in some seconds."
)
NOT_HERE = "Not replayed: TensorFlow of that version is not on this machine."


def failed(why: str) -> str:
    """Return the line where no table can be made, for the reason *why*."""
    return f"The recorded allocations cannot be replayed: {why}"


def taken(limit: str, growth: str) -> str:
    """Return the line after a row was chosen for the next run."""
    return f"The next run has growth {growth}, limit {limit}. [R] starts it."


def taken_limit(limit: str) -> str:
    """Return the line after a row was chosen for the next run, where there is no choice of growth."""
    return f"The next run has limit {limit}. [R] starts it."
