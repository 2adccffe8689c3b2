"""Copies the regions and chunks of pools to files in the session's folder, from which the engine makes maps."""

from time import thread_time
from typing import Any, NamedTuple, Optional

from .direct import Cut, Direct, NoCopy
from .memory import Sheet
from .messenger import Messenger

LIVE, OUT_OF_MEMORY = "live", "out_of_memory"
"""The moments at which pools are copied. Each has a file of its own, so that neither overwrites the other."""


class Copy(NamedTuple):
    """A copy of a pool in its file. ``cost`` is in seconds; ``cut`` is ``None`` if the pool changed during the copy."""

    device: str
    moment: str
    cut: Optional[Cut]
    cost: float


class ChunkCopies:
    """Makes copies, and reports them to the engine. All of it runs in the sampler's thread."""

    def __init__(self, messenger: Messenger, folder: Optional[str]) -> None:
        """*folder* is the session's; ``None`` if it is not known in this process."""
        self._messenger = messenger
        self.folder = folder
        self._sheets: dict[tuple[str, str], Sheet] = {}

    def make(self, direct: Direct, device: str, place: "tuple[int, int]", moment: str) -> Copy:
        """Copy the regions and chunks of a pool.

        Raises:
            NoCopy: there is no folder or no room for the copy, or the pool has too many chunks.
        """
        if self.folder is None:
            raise NoCopy("no_folder")
        sheet = self._sheets.get((device, moment))
        if sheet is None:
            path = f"{self.folder}/{self._messenger.pid}.{device}.{moment}.chunks"
            sheet = self._sheets[device, moment] = Sheet(path)
        began = thread_time()
        try:
            cut = direct.cut(*place, sheet)
        except OSError as error:
            raise NoCopy("no_room", None, error.strerror or str(error)) from None
        return Copy(device, moment, cut, thread_time() - began)

    def tell(self, direct: Direct, copy: Copy, wanted: "list[list[Any]]") -> None:
        """Report *copy*, which must have a cut.

        *wanted* lists pairs: a region's address, ``None`` for all regions, and the seconds until its next map.
        """
        cut, layout = copy.cut, direct.layout
        assert cut is not None
        # A report of the moment when memory ran out must arrive. A live one may be dropped, as a newer one follows.
        say = self._messenger.offer if copy.moment == LIVE else self._messenger.send
        say(
            "chunks",
            device=copy.device,
            moment=copy.moment,
            pool=cut.pool,
            in_use=cut.in_use,
            regions=[cut.regions, layout.region_size, layout.region_address, layout.region_bytes],
            chunks=[cut.chunks, layout.chunk_size, layout.chunk_address, layout.chunk_bytes],
            chunk=[layout.chunk_requested, layout.chunk_id, layout.chunk_bin],
            wanted=wanted,
            cost_us=int(copy.cost * 1e6),
        )

    def close(self) -> None:
        """Release the memory; the files stay, for the engine to read."""
        for sheet in self._sheets.values():
            sheet.close()
