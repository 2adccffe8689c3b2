"""Checks whether this machine has what a run needs. Of the user's programs, only a bare interpreter is started."""
