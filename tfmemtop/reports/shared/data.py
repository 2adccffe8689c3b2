"""What a page shows, as Python writes it. ``page/src/data.ts`` has the same classes, and says what the fields are.

Sizes are bytes. Times are seconds since the session began, unless a name ends in ``_us``.
"""

import msgspec

from tfmemtop.reports.answers import Answer

Known = list[int | None]
"""A column in which some figures are not known."""

_NAMES = {
    "setting_rows": "settingRows",
    "what_if": "whatIf",
    "in_use": "inUse",
    "peak_at": "peakAt",
    "largest_free": "largestFree",
    "left_out": "leftOut",
    "begins": "from",
    "ends": "to",
}
"""The fields that have another name in JavaScript."""


class PageStruct(msgspec.Struct, frozen=True, kw_only=True, rename=_NAMES.get):
    """The base of all parts of a page."""


class PageLayer(PageStruct, frozen=True):
    key: str
    name: str
    bytes: Known


class PagePlace(PageStruct, frozen=True):
    """A GPU or the CPU's pool, and its memory over time."""

    key: str
    name: str
    model: str
    total: int | None
    times: list[float]
    layers: list[PageLayer]
    limits: dict[str, int]


class PageVerdict(PageStruct, frozen=True):
    severity: str
    text: str
    evidence: str
    remedies: list[str]
    command: str
    code: str


class PageFinding(PageStruct, frozen=True):
    severity: str
    text: str
    began: float
    ended: float | None


class PagePart(PageStruct, frozen=True):
    name: str
    bytes: int
    exact: bool
    meaning: str


class PageAccount(PageStruct, frozen=True):
    heading: str
    total: int
    parts: list[PagePart]
    notes: list[str]


class PagePhase(PageStruct, frozen=True):
    label: str
    began: float
    ended: float | None
    peaks: dict[str, int]


class PageWhatIf(PageStruct, frozen=True):
    """The table of a pool under other settings."""

    device: str
    about: list[str]
    columns: list[str]
    rows: list[tuple[str, ...]]
    sentences: list[str]


class PageOwner(PageStruct, frozen=True):
    """What buffers that are alike have in common."""

    kind: str
    layer: str
    op: str
    shape: str
    line: str
    code: str
    stack: tuple[str, ...]


class PageWindow(PageStruct, frozen=True):
    """Recorded allocations, as columns."""

    title: str
    about: str
    began: float
    ended: float
    peak: int
    peak_at: int
    unknown: int
    left_out: int
    times_us: list[int]
    owner: list[int]
    bytes: list[int]
    address: list[int]
    base: int
    begins: list[int]
    ends: list[int]


class PageRegion(PageStruct, frozen=True):
    address: int
    size: int
    since: float | None
    in_use: int
    shares: list[int]
    kinds: list[str]
    names: list[str]


class PageMap(PageStruct, frozen=True):
    at: float
    base: int
    regions: list[PageRegion]
    free: int
    largest_free: int


class PagePool(PageStruct, frozen=True):
    """The pool of a logical device of a process."""

    pid: int
    device: str
    place: str
    owners: list[PageOwner]
    windows: list[PageWindow]
    shown: int
    maps: list[PageMap]


class PageRun(PageStruct, frozen=True):
    number: int
    title: str
    settings: str
    heading: str
    began: float
    ended: float | None
    facts: list[tuple[str, str]]
    verdict: PageVerdict
    findings: list[PageFinding]
    answers: list[Answer]
    setting_rows: list[tuple[str, ...]]
    accounts: list[PageAccount]
    phases: list[PagePhase]
    failures: list[float]
    what_if: list[PageWhatIf]
    pools: list[PagePool]


class PageSession(PageStruct, frozen=True):
    name: str
    placement: str
    began: float
    ended: float
    places: list[PagePlace]
    runs: list[PageRun]
    notes: list[str]


class PageRow(PageStruct, frozen=True):
    name: str
    values: list[str]
    different: bool


class PageDifference(PageStruct, frozen=True):
    name: str
    values: Known


class PageComparison(PageStruct, frozen=True):
    title: str
    rows: list[PageRow]
    differences: list[PageDifference]
    text: list[str]


class PageData(PageStruct, frozen=True):
    """All that a page shows."""

    tfmemtop: str
    sessions: list[PageSession]
    comparison: PageComparison | None
