"""How many files may be open: enough for a thousand hooks; the script has the limit that it was given."""

import resource

_GIVEN = resource.getrlimit(resource.RLIMIT_NOFILE)
_ENOUGH = 65_536


def take_many() -> None:
    """Raise this process's own limit as far as anybody may."""
    soft, hard = _GIVEN
    if soft != resource.RLIM_INFINITY and soft < _ENOUGH:
        most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def give_back() -> None:
    """In the script's process: the limit as it was."""
    resource.setrlimit(resource.RLIMIT_NOFILE, _GIVEN)
