"""The remedies of the findings: each has its text, its keys on the screen and its options."""

import re
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from tfmemtop.units import format_bytes


class Remedy(msgspec.Struct, frozen=True):
    """Something that the user can do: for the next run, on the screen, or in the script.

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
    def brief(self) -> str:
        """The text up to a colon or bracket, as a sentence; empty for what is done by options or on the screen."""
        short = re.split(r": | \(", self.text)[0]
        return "" if self.options or self.name or self.screen_only else f"{short[0].upper()}{short[1:]}."

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


class Action:
    """The remedies, by name."""

    GROWTH_ON = Remedy("turn growth on", ("G",), ("--growth", "on"))
    SET_GROWTH = Remedy("set growth for the next run", ("G",), ("--growth", "on|off"))
    SET_LIMIT = Remedy("set a limit", ("L",), _LIMIT)
    SHARE_LIMIT = Remedy("set one limit, which the logical devices of a card share", ("L",), _LIMIT)
    LEAVE_ROOM = Remedy("set limits that together leave room on the card", ("L",), _LIMIT)
    GIVE_CPU_POOL = Remedy(
        "give TensorFlow a pool on the CPU, such as half of the memory", ("L",), ("--cpu-pool", "50%")
    )
    FIND_LIMIT = Remedy("find the smallest limit that works", ("F",), name="fit")
    USE_CUDA_ALLOCATOR = Remedy(
        "use cuda_malloc_async, which joins free chunks", ("A",), ("--allocator", "cuda_malloc_async")
    )
    CHOOSE_GPUS = Remedy("choose GPUs", ("V",), _GPUS)
    USE_OTHER_GPU = Remedy("use another GPU", ("V",), _GPUS)
    HIDE_UNUSED_GPUS = Remedy("show the next run only the GPUs that it uses", ("V",), _GPUS)
    HIDE_OTHER_GPUS = Remedy("hide the other GPUs", ("V",), _GPUS)
    XLA_REPORT = Remedy("have the next run report what lies in XLA's buffers", ("D",), ("--xla-report",))
    REDUCE_BATCH = Remedy(
        "use smaller batches (or a smaller model, or mixed precision, which saves at most half of the activations)",
        ("E",),
    )
    REDUCE_HALVED = Remedy("use smaller batches (or a smaller model)", ("E",))
    NEED_LESS = Remedy("use smaller batches or a smaller model (which of them helps is not known)", ("E",))
    RUN_AGAIN = Remedy("run it again", ("R",), screen_only=True)
    RUN_WHEN_FREE = Remedy("run it again when the card is free", ("R",))
    FEWER_ON_CARD = Remedy("run fewer processes on one card (or give each its own: tf.config.set_visible_devices)")
    CHANGE_SETTINGS = Remedy("change how it runs", ("G", "L", "A", "V", "E"), screen_only=True)
    CHANGE_WITHOUT_GPU = Remedy("change how it runs", ("L", "A", "E"), screen_only=True)
    QUIT = Remedy("quit", ("q",), screen_only=True)
    SHOW_LINES = Remedy("run it with TF_CPP_MIN_LOG_LEVEL=0: TensorFlow's own lines then name the size", ("E",))
    SHOW_POOL = Remedy("look at the pool's chunks", ("M",), screen_only=True)
    SHOW_PROCESS = Remedy("look at the process's details", ("Enter",), screen_only=True)
    FEED_FASTER = Remedy("use larger batches, or prefetch")
    KEEP_NUMBERS = Remedy("keep float(loss), not the tensor")
    KEEP_ARRAYS = Remedy("keep fewer, or NumPy arrays (tensor.numpy()): bound the list, queue or cache that keeps them")
    REPEAT_DATASET = Remedy("use data.repeat(): itertools.cycle keeps all elements")
    KEEP_MESSAGES = Remedy("keep str(error) (or error.with_traceback(None)) in place of the exception")
    SMALLER_QUEUE = Remedy("give the tf.queue a smaller capacity: what fills it then waits")
    BOUND_QUEUE = Remedy("give the queue a maxsize: its producer then waits")
    SUM_UP = Remedy("add the gradients up as they come (or keep float(their norm)) in place of a list of them")
    DROP_MODELS = Remedy(
        "keep fewer models: drop those no longer needed, and call gc.collect(); if all are needed, use smaller ones, "
        "or keep the weights of idle ones as arrays, model.get_weights()"
    )
    BOUND_CACHE = Remedy(
        "keep only the newest, and delete the old: set maxsize on a cache; delete the old model before making a new one"
    )
    SEPARATE_PROCESS = Remedy("run each model in a process of its own: its end frees all of it")
    PROCESS_EACH = Remedy(
        "use a process per model: the memory is freed when the process ends; clear_session does not free it"
    )
    ONE_MODEL = Remedy("make one model for all: threads can share it, and model.set_weights(weights) resets it")
    ONE_OPTIMIZER = Remedy(
        "keep one optimizer, and compile once: optimizer.learning_rate.assign(1e-4) sets another rate"
    )
    FEWER_OPTIMIZERS = Remedy(
        "use fewer optimizers, or SGD: all phases of a training can share one; SGD without momentum keeps nothing for "
        "each weight"
    )
    PREDICT_PARTS = Remedy("call predict for parts of the data: it keeps the results of all batches until it ends")
    SEPARATE_GRAPH = Remedy(
        "close each Session that is no longer needed: with a tf.Graph and a Session for each, that frees it"
    )
    SMALLER_MODEL = Remedy(
        "use a smaller model, or SGD: without momentum or gradient accumulation, it keeps nothing for each weight; or "
        "train fewer layers"
    )
    FEWER_WEIGHTS = Remedy("use a smaller model: fewer or smaller layers; or train fewer of them")
    SMALLER_VARIABLE = Remedy(
        "use fewer or smaller variables: drop models no longer needed, and call gc.collect(); or smaller layers, with "
        "fewer rows or units; pooling or strides before the Flatten that feeds a Dense"
    )
    CLEAR_RESULTS = Remedy("end the line with ; and clear the results with %reset -f out")
    TAPE_EACH_STEP = Remedy(
        "record fewer rounds on one tape, or use tf.recompute_grad (or smaller batches; or a tape for each round, "
        "where its gradient needs no other round)"
    )
    LESS_ON_TAPE = Remedy(
        "use smaller batches, or record less on one tape: take the gradient of each batch, and add the gradients up"
    )
    DROP_TAPES = Remedy("drop each after its gradient(): a tape keeps all that it has recorded")
    BUILD_ONCE = Remedy(
        "build the graph once: feed values by a placeholder; after graph.finalize() any addition is an error"
    )
    PASS_ARRAYS = Remedy("pass its arrays as arguments (as tensors, and no Python value that changes)")
    DEFINE_ONCE = Remedy("define the function once: pass the array as an argument or a tf.Variable")
    SMALLER_BUFFER = Remedy("use a smaller buffer: shuffle indices or file names, and load after that")
    CACHE_IN_FILE = Remedy("cache in a file: cache(FILE); or before the elements are decoded, or not at all")
    PREFETCH_LESS = Remedy("prefetch fewer batches: two are enough, prefetch(2)")
    INTERLEAVE_LESS = Remedy("use a smaller cycle_length: fewer inputs are open at once, each with its own prefetch")
    LESS_AHEAD = Remedy(
        "have tf.data keep less (use a smaller num_parallel_calls, cycle_length or prefetch, or fewer buckets)"
    )
    SMALLER_BATCHES = Remedy("use smaller batches (or have tf.data make fewer ahead: num_parallel_calls, prefetch)")
    SMALLER_PIECES = Remedy("read smaller pieces: what the function makes is kept until all of it is used")
    FEED_BATCHES = Remedy("feed it in batches: a generator, or tf.data that reads and maps batch by batch")
    FEWER_CALLS = Remedy("run fewer calls at a time (use fewer threads, or hold a threading.Lock around the call)")
    BOUND_REQUEST = Remedy(
        "use a smaller batch or input (the batch, size or length that worked before), or compute it in parts"
    )
    BOUND_BATCH = Remedy("use a smaller batch (or split it into sizes that worked before)")
    BOUND_LENGTH = Remedy("limit the input's size (or length), or process it in parts")
    SHORTER_LOOP = Remedy(
        "use fewer rounds or smaller batches (shorter sequences; or tf.recompute_grad around the loop's body)"
    )
    CHECK_SHAPES = Remedy(
        "check the shapes, or compute it in parts: (N,) and (N, 1) make (N, N), which may not be meant"
    )
    FEWER_ROWS = Remedy("compute fewer rows at a time: smaller batches, part of the data, or fewer rounds of a loop")
    IN_PARTS = Remedy("compute less of it, or in parts: batch by batch with tf.data, or in a layer of the model")
    KEEP_INTEGERS = Remedy(
        "use integers in place of one_hot: labels with sparse_categorical_crossentropy, inputs with an Embedding"
    )
    USE_FLOAT32 = Remedy(
        "use float32: it takes half of float64, the type of NumPy's arrays; array.astype(numpy.float32)"
    )
    STAY_SPARSE = Remedy("keep it sparse: use tf.sparse.sparse_dense_matmul, or make it dense in parts, batch by batch")
    PAD_ALIKE = Remedy("put rows of similar length into one batch (bucket_by_sequence_length), or bound the length")
    REDUCED_FORM = Remedy("use full_matrices=False: the result then has only the columns that the matrix needs")
    CONCAT_ON_HOST = Remedy(
        "limit its length, or preallocate it: keep only its newest rows; or make it in full length, and fill it; or "
        "append tensor.numpy() to a list, and concatenate once"
    )
    KEEP_SPARSE = Remedy("keep the gradient as IndexedSlices: change only the rows that were used")
    TRACE_HOST = Remedy(
        "run it with tracemalloc: it names the lines that made what Python keeps, such as arrays in a list; it "
        "does not see what TensorFlow keeps, such as a lookup table"
    )
    BOUND_ARRAYS = Remedy("bound it, or write the arrays to a file: the list or dict keeps all of them")
    ONE_DATASET = Remedy("make one Dataset before the loop: pass it the data")
    FIX_SHAPES = Remedy("use shapes and sizes that do not change, such as by padding to a few sizes")
    FIX_ARGUMENTS = Remedy("pass tensors instead of Python values, or fix the input_signature")
    STACK_LIST = Remedy("pass one tensor, tf.stack(the list), instead of a list of tensors whose length changes")
    ONE_GRAPH = Remedy("use reduce_retracing=True, or an input_signature with None: one graph then serves all lengths")
    COMPILE_ONCE = Remedy("make and compile a model once, and give it batches of one shape")
    JAX_GROWTH_ON = Remedy(
        "let JAX take memory only when it needs it, with XLA_PYTHON_CLIENT_PREALLOCATE=false", ("G",)
    )
    JAX_AGAIN = Remedy("run it again: tfmemtop now knows that it uses JAX, and turns growth on there too", ("R",))
    MORE_FOR_JAX = Remedy(
        "give JAX a larger share of the card, with XLA_PYTHON_CLIENT_MEM_FRACTION (0.75 if it is not set)", ("L",)
    )
    MORE_FOR_TORCH = Remedy(
        "set a higher limit for PyTorch, in the script or, from PyTorch 2.10 on, in PYTORCH_CUDA_ALLOC_CONF", ("L",)
    )
    EXPAND_SEGMENTS = Remedy(
        "let PyTorch's segments grow, with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", ("E",)
    )
    HIDE_FROM_TENSORFLOW = Remedy("hide the GPU from TensorFlow where it only prepares data")


def raise_limit(tried: int | None, *, on_cpu: bool) -> Remedy:
    """Return the remedy of a limit above the *tried* one, in bytes. On the CPU, that is a larger pool."""
    than = "" if tried is None else f" than {format_bytes(tried)}"
    if on_cpu:
        return Remedy(f"set a larger pool{than}", ("L",), ("--cpu-pool", "SIZE"))
    return Remedy(f"set a higher limit{than}", ("L",), _LIMIT)


def without_batches(remedies: tuple[Remedy, ...], instead: Remedy = Action.SMALLER_MODEL) -> tuple[Remedy, ...]:
    """Return the *remedies* for memory that does not depend on the batch: *instead* of a smaller one, another."""
    return tuple(instead if one in (Action.REDUCE_BATCH, Action.NEED_LESS) else one for one in remedies)


BEHIND_THE_IMPORT = "# right after the import, before anything else:"

GROWTH = (
    "import tensorflow as tf",
    BEHIND_THE_IMPORT,
    'for gpu in tf.config.list_physical_devices("GPU"):',
    "    tf.config.experimental.set_memory_growth(gpu, True)",
)


_LOOKS = frozenset(("M", "Enter", "q"))
"""The keys that change nothing for the script."""


def offered(remedies: Iterable[Remedy], *, steers: bool) -> list[Remedy]:
    """Return *remedies* as a screen offers them.

    A screen that does not steer the script has no keys for that. It shows the options instead.
    """
    if steers:
        return list(remedies)
    return [_not_steering(each) for each in remedies if not (each.screen_only and _steers(each))]


def _steers(remedy: Remedy) -> bool:
    return not _LOOKS.issuperset(remedy.keys)


def _not_steering(remedy: Remedy) -> Remedy:
    return replace(remedy, text=remedy.elsewhere, keys=()) if _steers(remedy) else remedy
