"""The labels that identify the session to which figures belong. Pure."""

from tfmemtop.events import Session


def whose(session: Session | None) -> dict[str, str]:
    """Return the labels that all samples of a session have. Job and rank are empty if the session has none."""
    place = session.placement if session else None
    rank = "" if place is None or place.rank is None else str(place.rank)
    host = (place.host if place else "") or (session.host if session else "")
    return {"host": host, "job": (place.job if place else None) or "", "rank": rank}
