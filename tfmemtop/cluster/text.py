"""The text of the cluster screen: what is wrong with a rank or GPU, and why Prometheus does not answer."""

from tfmemtop.cluster.client import NoAnswer, Trouble
from tfmemtop.cluster.judge import Judged, Kind, Wrong
from tfmemtop.cluster.overview import ClusterRow, Silence
from tfmemtop.cluster.queries import PACE_S, RISE_S
from tfmemtop.events.device_names import is_cpu
from tfmemtop.safe import safe
from tfmemtop.units import format_bytes, format_duration, format_rate, format_short

_SHORT = {
    Kind.RAN_OUT: "out of memory",
    Kind.RUNS_OUT_SOON: "full soon",
    Kind.LEAKING: "leak",
    Kind.FULL_BUT_IDLE: "full, idle",
    Kind.OUTLIER: "outlier",
    Kind.SILENT: "silent",
    Kind.UNREAD: "memory not read",
    Kind.NO_TENSORFLOW: "no TensorFlow",
}
_SILENT = {Silence.DOWN: "down", Silence.OLD: "old", Silence.GONE: "gone"}
ENDED = "ended"
_NOTICE = "notice_"


def in_short(judged: Judged) -> str:
    """Return what is wrong in a few words, the worst first: ``full soon 97%, leak``; empty if nothing is wrong."""
    return ", ".join(dict.fromkeys(map(_short, judged.wrongs)))


def _short(wrong: Wrong) -> str:
    if wrong.silence is not None and wrong.silence in _SILENT:
        since = f" {format_duration(wrong.silent_s)}" if wrong.silent_s >= 1 else ""
        return _SILENT[wrong.silence] + since
    if wrong.kind is Kind.RUNS_OUT_SOON and wrong.left_s is not None:
        return f"full in {format_duration(wrong.left_s)}"
    if wrong.kind is Kind.RUNS_OUT_SOON and wrong.share is not None:
        return f"full soon {wrong.share * 100:.0f}%"
    if wrong.kind is Kind.LEAKING and wrong.rate is not None:
        return f"leak {_rate(wrong.rate)}"
    if wrong.kind is Kind.OUTLIER and wrong.size is not None:
        return f"outlier {'+' if wrong.size > 0 else '-'}{format_short(abs(wrong.size))}"
    if wrong.kind is Kind.SLOW and wrong.share is not None:
        return f"{wrong.share * 100:.0f}% slower"
    if wrong.silence is Silence.ENDED:
        return ENDED
    return _SHORT.get(wrong.kind) or _plain(wrong.key)


def _plain(key: str) -> str:
    return safe(key.removeprefix(_NOTICE).replace("_", " "))


def at_length(row: ClusterRow, wrong: Wrong) -> str:
    """Return a sentence or two on what is wrong."""
    match wrong.kind:
        case Kind.RAN_OUT:
            return "An allocation failed: TensorFlow ran out of memory."
        case Kind.RUNS_OUT_SOON:
            return _runs_out(row, wrong)
        case Kind.LEAKING:
            return _leaks(wrong)
        case Kind.FULL_BUT_IDLE:
            return _idle(row)
        case Kind.OUTLIER:
            return _outlier(row, wrong)
        case Kind.SLOW:
            return _slow(row, wrong)
        case Kind.SILENT | Kind.GONE:
            return _silent(row, wrong)
        case Kind.UNREAD:
            return "This rank has loaded TensorFlow, but none of its memory was read: it uses none, or cannot be read."
        case Kind.NO_TENSORFLOW:
            return "No TensorFlow has been seen in this rank: it has not loaded TensorFlow yet, or never does."
    if wrong.silence is Silence.ENDED:
        return "The run has ended. The figures are the last ones."
    return remark(wrong.key)


def remark(key: str) -> str:
    """Return the sentence about *key*, a finding or a notice that has no sentence of its own on this screen.

    The tfmemtop of the rank reported it.
    """
    if key.startswith(_NOTICE):
        return f"Its tfmemtop reports: {_plain(key)}. Its own screen says more."
    return f"Its tfmemtop reports the finding {safe(key)}: see tfmemtop help findings, or its own screen."


def _runs_out(row: ClusterRow, wrong: Wrong) -> str:
    if wrong.left_s is not None and wrong.rate is not None:
        return (
            f"Memory in use rises by {_rate(wrong.rate)}. At this pace the limit of {format_bytes(row.limit)} "
            f"is reached in about {format_duration(wrong.left_s)}."
        )
    if wrong.share is None:
        return "TensorFlow finds no room for an allocation, and waits for some."
    return f"{format_bytes(row.in_use)} are in use: {wrong.share * 100:.0f}% of the limit of {format_bytes(row.limit)}."


def _leaks(wrong: Wrong) -> str:
    if wrong.rate is None:
        return "Memory in use keeps rising: its tfmemtop reports a leak."
    return (
        f"Memory in use keeps rising, also at its lowest points, by {_rate(wrong.rate)} "
        f"in the last {format_duration(RISE_S)}."
    )


def _idle(row: ClusterRow) -> str:
    used = f"{format_bytes(row.used)} of {format_bytes(row.total)} are taken" if row.used else "The memory is taken"
    return f"{used}, and the GPU computes little."


def _outlier(row: ClusterRow, wrong: Wrong) -> str:
    more = "more" if (wrong.size or 0) > 0 else "less"
    return (
        f"Rank {safe(row.rank)} has {format_bytes(abs(wrong.size or 0))} {more} in use than the median "
        f"of the ranks of job {safe(row.job)}, {format_bytes(wrong.median)}."
    )


def _slow(row: ClusterRow, wrong: Wrong) -> str:
    share, pace, usual = wrong.share or 0.0, wrong.pace or 0.0, wrong.usual or 0.0
    return (
        f"Rank {safe(row.rank)} is {share * 100:.0f}% slower: {format_rate(pace)} steps a second in the last "
        f"{format_duration(PACE_S)}, where the median of the ranks of job {safe(row.job)} is {format_rate(usual)}."
    )


def _silent(row: ClusterRow, wrong: Wrong) -> str:
    since = f" for {format_duration(wrong.silent_s)}" if wrong.silent_s >= 1 else ""
    if wrong.silence is Silence.DOWN:
        return f"The exporter has not answered Prometheus{since}. The figures are the last ones."
    if wrong.silence is Silence.OLD:
        return f"The figures are {format_duration(wrong.silent_s)} old: no newer ones are written."
    other = f"rank of job {safe(row.job)}" if row.rank else "GPU of this host"
    if wrong.kind is Kind.GONE:
        return f"Prometheus has had no figures{since}. It has none of any other {other}: probably all have ended."
    return f"Prometheus has had no figures{since}. Another {other} has not ended."


def _rate(rate: float) -> str:
    return f"{format_bytes(int(rate * 60))}/min"


NOTHING_WRONG = "The figures show nothing wrong here."


def no_history(span_s: float) -> str:
    """Return the text for a row without figures in the last *span_s* seconds, so that there is nothing to draw."""
    return f"Prometheus has no figures of it in the last {format_duration(span_s)}."


def whose(row: ClusterRow) -> str:
    """Return host, GPU, job, rank and user of *row*: ``node3 GPU 1 · job 42 rank 7 · ada``."""
    gpu = gpu_name(row)
    place = f"{row.host} {gpu}".strip()
    job = " ".join([f"job {row.job}"] * bool(row.job) + [f"rank {row.rank}"] * bool(row.rank)) if row.rank else ""
    return safe(" · ".join(part for part in (place, job, row.user) if part))


def gpu_name(row: ClusterRow) -> str:
    """Return the name of a row's GPU: ``GPU 1``; its UUID if it has no index; ``CPU`` for a pool without a GPU."""
    if row.gpu:
        return f"GPU {row.gpu}"
    if row.uuid:
        return row.uuid[:12]
    return "CPU" if is_cpu(row.device) else ""


_TROUBLES = {
    Trouble.NO_SUCH_HOST: "there is no host of that name ({})",
    Trouble.UNREACHABLE: "it cannot be reached ({})",
    Trouble.SILENT: "it does not answer in time",
    Trouble.CERTIFICATE: "its certificate is not accepted ({})",
    Trouble.WHO_ARE_YOU: "it refuses the user, password or token (HTTP {})",
    Trouble.ELSEWHERE: "it redirects to {}; give that address",
    Trouble.NOT_PROMETHEUS: "the server at that address is not Prometheus",
    Trouble.QUERY_REFUSED: "it refuses the query: {}",
    Trouble.OVERLOADED: "it has no room for the query now (HTTP {})",
    Trouble.TOO_LARGE: "its answer is too large; name a --job",
    Trouble.BROKEN_OFF: "the connection broke off",
}


def no_answer(url: str, trouble: NoAnswer) -> str:
    """Return why Prometheus at *url* does not answer, as one clause."""
    detail = safe(trouble.detail) or "no reason given"
    return f"Prometheus at {safe(url)}: {_TROUBLES[trouble.trouble].format(detail)}"


def since(trouble: str, lasted_s: float, old_s: float | None) -> str:
    """Return *trouble* with how long it has lasted, and how old the figures are that the screen shows; seconds."""
    told = f"{trouble}, for {format_duration(lasted_s)}"
    return told if old_s is None else f"{told}; the figures are {format_duration(old_s)} old"


def clocks_apart(ahead_s: float) -> str:
    """Return the line about the clock of Prometheus, which is *ahead_s* seconds ahead of this machine's."""
    side = "ahead of" if ahead_s > 0 else "behind"
    return f"Prometheus' clock is {format_duration(abs(ahead_s))} {side} this machine's"


def counted(rows: int, hosts: int, jobs: int, wrong: int) -> str:
    """Return the totals: ``8,000 rows on 1,000 hosts, 12 jobs; something is wrong with 3``."""
    told = f"{_count(rows, 'row')} on {_count(hosts, 'host')}" + (f", {_count(jobs, 'job')}" if jobs else "")
    return f"{told}; something is wrong with {wrong:,}" if wrong else f"{told}; nothing is wrong"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


ASKING = "Prometheus is being asked …"
NOTHING_THERE = "Prometheus has no figures of tfmemtop"
SEE = "its targets must be programs started with --metrics; see tfmemtop help cluster"


def nothing_of(job: str | None) -> str:
    """Return the text for no rows at all, and what would bring some."""
    return f"{NOTHING_THERE} for job {safe(job)}" if job is not None else f"{NOTHING_THERE}: {SEE}"


def no_match(wanted: str) -> str:
    """Return the text for a filter that no row passes."""
    return f"no row has {safe(wanted)}"


COLUMNS = (
    ("CARD", "of the card: in use by TensorFlow, taken otherwise, free"),
    ("USED", "memory that all processes take on the card, and what the card has"),
    ("TF-USE", "the most that TensorFlow had in use since the previous scrape"),
    ("LIMIT", "of TensorFlow's pool"),
    ("UTIL", "share of the time in which the GPU computed"),
    ("WRONG", "what is wrong, the worst first"),
)
"""The columns whose names need an explanation, with their explanations."""


def table_title(shown: int, count: int) -> str:
    """Return the title above the table. A filter may hide some of its *count* rows."""
    return f"Ranks and GPUs {count:,}" if shown == count else f"Ranks and GPUs {shown:,} of {count:,}"


HELP_GROUPS = {"screen": "The screen", "cluster": "The table", "gpu": "An opened GPU"}
"""The titles of the groups of keys in the help."""
