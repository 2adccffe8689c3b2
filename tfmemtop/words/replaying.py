"""Why a replay gave no table, where its own process could not say it. Pure."""

NO_ANSWER = "the replay gave no answer"


def not_done(seconds: float) -> str:
    """It took too long."""
    return f"the replay was not done within {seconds:.0f} s"
