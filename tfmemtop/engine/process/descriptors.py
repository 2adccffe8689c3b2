"""The limit on open files. The engine needs enough for a thousand hooks; the script keeps the original limit."""

import resource

_GIVEN = resource.getrlimit(resource.RLIMIT_NOFILE)
_ENOUGH = 65_536


def take_many() -> None:
    """Raise this process's limit to 65,536, or as far as its hard limit allows."""
    soft, hard = _GIVEN
    if soft != resource.RLIM_INFINITY and soft < _ENOUGH:
        most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def give_back() -> None:
    """Restore the original limit. Called in the script's process."""
    resource.setrlimit(resource.RLIMIT_NOFILE, _GIVEN)
