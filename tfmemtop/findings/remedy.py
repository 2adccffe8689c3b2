"""The remedy of a finding, as a value. Its text names its key on the screen and its option."""

from collections.abc import Iterable
from enum import Enum, auto

import msgspec
from msgspec.structs import replace


class Action(Enum):
    """Something that the user can do: for the next run, on the screen, or in the script."""

    GROWTH_ON = auto()
    SET_GROWTH = auto()  # on or off, as the user likes
    SET_LIMIT = auto()
    RAISE_LIMIT = auto()
    SHARE_LIMIT = auto()  # one limit for all logical devices of a card
    LEAVE_ROOM = auto()  # limits that together are less than the card
    ENLARGE_CPU_POOL = auto()
    FIND_LIMIT = auto()
    USE_CUDA_ALLOCATOR = auto()
    CHOOSE_GPUS = auto()
    USE_OTHER_GPU = auto()
    HIDE_UNUSED_GPUS = auto()
    HIDE_OTHER_GPUS = auto()  # those for which growth was not set
    XLA_REPORT = auto()
    REDUCE_BATCH = auto()
    RUN_AGAIN = auto()
    RUN_WHEN_FREE = auto()
    CHANGE_SETTINGS = auto()
    QUIT = auto()

    SHOW_POOL = auto()
    SHOW_PROCESS = auto()

    FEED_FASTER = auto()
    KEEP_NUMBERS = auto()  # the tensors that were kept are scalars
    KEEP_ARRAYS = auto()
    KEEP_MESSAGES = auto()  # of exceptions
    BOUND_QUEUE = auto()
    SUM_UP = auto()  # gradients
    DROP_MODELS = auto()
    BOUND_CACHE = auto()
    SEPARATE_PROCESS = auto()
    SEPARATE_GRAPH = auto()
    SMALLER_MODEL = auto()
    CLEAR_RESULTS = auto()  # a notebook's
    TAPE_EACH_STEP = auto()
    DEFINE_ONCE = auto()
    SMALLER_BUFFER = auto()
    CACHE_IN_FILE = auto()
    PREFETCH_LESS = auto()
    INTERLEAVE_LESS = auto()
    FEED_BATCHES = auto()
    BOUND_REQUEST = auto()
    CHECK_SHAPES = auto()
    FEWER_ROWS = auto()  # of a Jacobian, or of a vectorized map
    IN_PARTS = auto()
    CONCAT_ON_HOST = auto()
    KEEP_SPARSE = auto()
    ONE_DATASET = auto()
    FIX_SHAPES = auto()
    FIX_ARGUMENTS = auto()
    COMPILE_ONCE = auto()

    # Of JAX and PyTorch. The keys set for them what they set for TensorFlow; tfmemtop has no options for them.
    JAX_GROWTH_ON = auto()
    JAX_AGAIN = auto()
    MORE_FOR_JAX = auto()
    MORE_FOR_TORCH = auto()
    EXPAND_SEGMENTS = auto()
    HIDE_FROM_TENSORFLOW = auto()

    AS_NOTICE_SAYS = auto()


class Remedy(msgspec.Struct, frozen=True):
    """An action; with ``AS_NOTICE_SAYS``, ``text`` is what the notice says."""

    action: Action
    text: str = ""


def raise_limit(*, on_cpu: bool) -> Remedy:
    """Return the remedy of a higher limit. On the CPU, that is a larger pool."""
    return Remedy(Action.ENLARGE_CPU_POOL if on_cpu else Action.RAISE_LIMIT)


BEHIND_THE_IMPORT = "# right after the import, before anything else:"

GROWTH = (
    "import tensorflow as tf",
    BEHIND_THE_IMPORT,
    'for gpu in tf.config.list_physical_devices("GPU"):',
    "    tf.config.experimental.set_memory_growth(gpu, True)",
)


class SaidRemedy(msgspec.Struct, frozen=True):
    """A remedy as text.

    ``keys`` of the screen do what ``text`` describes; a remedy without keys is a change of the script. ``options`` of
    tfmemtop, with the command ``name`` where there is one, do it without the screen. The user replaces ``SIZE``,
    ``LIST`` and ``on|off`` in them. ``screen_only`` if the remedy does not help anywhere else.
    """

    text: str
    keys: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    name: str = ""
    screen_only: bool = False

    @property
    def to_type(self) -> str:
        """Command and options in one line, as ``--growth on``; empty if there are none."""
        named = f"tfmemtop {self.name} " if self.name else ""
        return (named + " ".join(self.options)).rstrip()

    @property
    def elsewhere(self) -> str:
        """The text for places without keys: ``turn growth on (--growth on)``."""
        return self.text + (f" ({self.to_type})" if self.to_type else "")

    @property
    def complete(self) -> bool:
        """Whether the options, or the command, can be typed as they are."""
        return bool(self.to_type) and not any(word in ("SIZE", "LIST", "on|off") for word in self.options)


_LIMIT = ("--memory-limit", "SIZE")
_GPUS = ("--gpus", "LIST")

_SAID = {
    Action.GROWTH_ON: SaidRemedy("turn growth on", ("G",), ("--growth", "on")),
    Action.SET_GROWTH: SaidRemedy("set growth for the next run", ("G",), ("--growth", "on|off")),
    Action.SET_LIMIT: SaidRemedy("set a limit", ("L",), _LIMIT),
    Action.RAISE_LIMIT: SaidRemedy("set a higher limit", ("L",), _LIMIT),
    Action.SHARE_LIMIT: SaidRemedy("set one limit, which the logical devices of a card share", ("L",), _LIMIT),
    Action.LEAVE_ROOM: SaidRemedy("set limits that together leave room on the card", ("L",), _LIMIT),
    Action.ENLARGE_CPU_POOL: SaidRemedy("set a larger pool", ("L",), ("--cpu-pool", "SIZE")),
    Action.FIND_LIMIT: SaidRemedy("find the smallest limit that works", ("F",), name="fit"),
    Action.USE_CUDA_ALLOCATOR: SaidRemedy(
        "use cuda_malloc_async, which joins free chunks", ("A",), ("--allocator", "cuda_malloc_async")
    ),
    Action.CHOOSE_GPUS: SaidRemedy("choose GPUs", ("V",), _GPUS),
    Action.USE_OTHER_GPU: SaidRemedy("use another GPU", ("V",), _GPUS),
    Action.HIDE_UNUSED_GPUS: SaidRemedy("show the next run only the GPUs that it uses", ("V",), _GPUS),
    Action.HIDE_OTHER_GPUS: SaidRemedy("hide the other GPUs", ("V",), _GPUS),
    Action.XLA_REPORT: SaidRemedy("have the next run report what lies in XLA's buffers", ("D",), ("--xla-report",)),
    Action.REDUCE_BATCH: SaidRemedy(
        "use smaller batches or a smaller model, or mixed precision, which saves at most half of the activations",
        ("E",),
    ),
    Action.RUN_AGAIN: SaidRemedy("run it again", ("R",), screen_only=True),
    Action.RUN_WHEN_FREE: SaidRemedy("run it again when the card is free", ("R",)),
    Action.CHANGE_SETTINGS: SaidRemedy("change how it runs", ("G", "L", "A", "V", "E"), screen_only=True),
    Action.QUIT: SaidRemedy("quit", ("q",), screen_only=True),
    Action.SHOW_POOL: SaidRemedy("look at the pool's chunks", ("M",), screen_only=True),
    Action.SHOW_PROCESS: SaidRemedy("look at the process's details", ("Enter",), screen_only=True),
    Action.FEED_FASTER: SaidRemedy("use larger batches, or prefetch"),
    Action.KEEP_NUMBERS: SaidRemedy("store float(loss), not the tensor"),
    Action.KEEP_ARRAYS: SaidRemedy("bound the list, queue or cache that keeps them, or store tensor.numpy() instead"),
    Action.KEEP_MESSAGES: SaidRemedy("keep str(error), or error.with_traceback(None), in place of the exception"),
    Action.BOUND_QUEUE: SaidRemedy("bound the queue, with maxsize, so that what fills it waits"),
    Action.SUM_UP: SaidRemedy("add the gradients up as they come, in place of a list of them"),
    Action.DROP_MODELS: SaidRemedy("keep the figures and drop the model before the next is made"),
    Action.BOUND_CACHE: SaidRemedy(
        "give the cache a bound (maxsize), or delete the old model or entry before a new one is made"
    ),
    Action.SEPARATE_PROCESS: SaidRemedy("run each model in a process of its own, whose end frees all of it"),
    Action.SEPARATE_GRAPH: SaidRemedy(
        "make each model in a tf.Graph and a Session of its own: the variables are freed as the Session is closed"
    ),
    Action.SMALLER_MODEL: SaidRemedy("use a smaller model, or an optimizer that keeps less, such as SGD"),
    Action.CLEAR_RESULTS: SaidRemedy("end the line with ; and clear the results with %reset -f out"),
    Action.TAPE_EACH_STEP: SaidRemedy(
        "record less on one tape: a new tape for each batch, smaller batches, a shorter loop, or tf.recompute_grad"
    ),
    Action.DEFINE_ONCE: SaidRemedy("define the function once, and pass the array as an argument or a tf.Variable"),
    Action.SMALLER_BUFFER: SaidRemedy("use a smaller buffer: shuffle indices or file names, and load after that"),
    Action.CACHE_IN_FILE: SaidRemedy(
        "cache in a file, cache(FILE), or before the elements are decoded; or do not cache"
    ),
    Action.PREFETCH_LESS: SaidRemedy("prefetch fewer batches: two are enough, prefetch(2)"),
    Action.INTERLEAVE_LESS: SaidRemedy(
        "open fewer inputs at the same time, by a smaller cycle_length, or open smaller inputs"
    ),
    Action.FEED_BATCHES: SaidRemedy("feed batches: a generator, or tf.data that reads and maps batch by batch"),
    Action.BOUND_REQUEST: SaidRemedy("bound the batch or the length to what worked before"),
    Action.CHECK_SHAPES: SaidRemedy(
        "check the shapes at that line: (N,) and (N, 1) make (N, N); if that is meant, compute it in parts"
    ),
    Action.FEWER_ROWS: SaidRemedy("compute fewer rows at a time, or give jacobian experimental_use_pfor=False"),
    Action.IN_PARTS: SaidRemedy("compute it in parts: batch by batch with tf.data, or in a layer of the model"),
    Action.CONCAT_ON_HOST: SaidRemedy("keep arrays in a list (tensor.numpy()), and concatenate once on the host"),
    Action.KEEP_SPARSE: SaidRemedy("keep the gradient as IndexedSlices: change only the rows that were used"),
    Action.ONE_DATASET: SaidRemedy("make one Dataset before the loop, and pass it the data"),
    Action.FIX_SHAPES: SaidRemedy("use shapes and sizes that do not change, such as by padding to a few sizes"),
    Action.FIX_ARGUMENTS: SaidRemedy("pass tensors instead of Python values, or fix the input_signature"),
    Action.COMPILE_ONCE: SaidRemedy("make and compile a model once, and give it batches of one shape"),
    Action.JAX_GROWTH_ON: SaidRemedy(
        "let JAX take memory only when it needs it, with XLA_PYTHON_CLIENT_PREALLOCATE=false", ("G",)
    ),
    Action.JAX_AGAIN: SaidRemedy(
        "run it again: tfmemtop now knows that it uses JAX, and turns growth on there too", ("R",)
    ),
    Action.MORE_FOR_JAX: SaidRemedy(
        "give JAX a larger share of the card, with XLA_PYTHON_CLIENT_MEM_FRACTION (0.75 if it is not set)", ("L",)
    ),
    Action.MORE_FOR_TORCH: SaidRemedy(
        "set a higher limit for PyTorch, in the script or, from PyTorch 2.10 on, in PYTORCH_CUDA_ALLOC_CONF", ("L",)
    ),
    Action.EXPAND_SEGMENTS: SaidRemedy(
        "let PyTorch's segments grow, with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", ("E",)
    ),
    Action.HIDE_FROM_TENSORFLOW: SaidRemedy("hide the GPU from TensorFlow, if it only prepares data"),
}


def said(remedy: Remedy) -> SaidRemedy:
    """Return the text of *remedy*."""
    return SaidRemedy(remedy.text) if remedy.text else _SAID[remedy.action]


_LOOKS = frozenset(("M", "Enter", "q"))
"""The keys that change nothing for the script."""


def offered(remedies: Iterable[Remedy], *, steers: bool) -> list[SaidRemedy]:
    """Return *remedies* as a screen offers them.

    A screen that does not steer the script has no keys for that. It shows the options instead.
    """
    words = [said(remedy) for remedy in remedies]
    return words if steers else [_not_steering(each) for each in words if not (each.screen_only and _steers(each))]


def _steers(words: SaidRemedy) -> bool:
    return not _LOOKS.issuperset(words.keys)


def _not_steering(words: SaidRemedy) -> SaidRemedy:
    return replace(words, text=words.elsewhere, keys=()) if _steers(words) else words


def on_screen(remedy: Remedy) -> str:
    """Return the remedy with its keys: ``[G] turn growth on``."""
    words = said(remedy)
    return "".join(f"[{key}] " for key in words.keys) + words.text


def elsewhere(remedy: Remedy) -> str:
    """Return the remedy with its options: ``turn growth on (--growth on)``."""
    return said(remedy).elsewhere
