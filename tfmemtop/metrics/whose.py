"""The labels that say whose figures these are. Pure."""

from tfmemtop.events import Session


def whose(session: Session | None) -> dict[str, str]:
    """The labels that all samples of a session have; those of its job are empty where it is of none."""
    place = session.placement if session else None
    rank = "" if place is None or place.rank is None else str(place.rank)
    host = (place.host if place else "") or (session.host if session else "")
    return {"host": host, "job": (place.job if place else None) or "", "rank": rank}
