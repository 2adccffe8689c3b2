"""What a watch is made of."""


class Source:
    """A part of a watch. It overrides what it needs.

    A watch begins its parts in one order, drains them in the same order, and closes them in the opposite order.
    """

    def begin(self) -> None:
        """Start. This is called in the running event loop."""

    def drain(self) -> None:
        """Publish what has arrived until now, so that the end of a run is published after it."""

    def close(self) -> None:
        """Stop, and publish nothing more."""
