"""The cases: what is run, what is true of it, and what must not be said about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Mended:
    """What passes where the case itself fails: the same script with other words, or another script."""

    arguments: str = ""
    script: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """A *script* in ``scripts/`` with *arguments*, run under ``record`` with *options*, and the truth about it.

    ``cause`` are the keys that are true, between ``|``. ``holder`` and ``remedy`` are regular expressions that must be
    found in what the verdict says; with ``None`` everything is accepted. None of ``never`` may occur in the report.
    ``ends`` is whether the run must fail or pass; a run that does not is not this case. ``compiled`` is whether XLA
    compiles a part of the script.
    """

    name: str
    script: str
    options: str
    cause: str
    arguments: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    holder: str | None = None
    remedy: str | None = None
    never: tuple[str, ...] = ()
    mended: Mended | None = None
    fails: bool = True
    compiled: bool = False
    on_gpu: bool = False
    in_ci: bool = False


NUMPY = r"tensor\.numpy\(\)"
HEALTHY = (r"ran out", r"out of memory", r"leak", NUMPY)
FRAGMENTED = r"[Ff]ragment"

CASES = (
    Case(
        "trials_keep_models", "trials_keep_models.py", "--cpu-pool 512M", "variables_kept", "models",
        holder=r"search\.done\[\*\]\[1\]", remedy=r"model|process", never=(NUMPY, FRAGMENTED), compiled=True,
        mended=Mended("losses"),
    ),
    Case(
        "models_in_loop", "models_in_loop.py", "--cpu-pool 1G", "runtime_keeps", "5", fails=False,
        remedy=r"process|run_eagerly", never=("Nothing needs to be changed", NUMPY), mended=Mended("5 eager"),
    ),
    Case(
        "models_in_loop_fails", "models_in_loop.py", "--cpu-pool 700M", "runtime_keeps", "30",
        remedy=r"process|run_eagerly", never=(NUMPY, FRAGMENTED), mended=Mended("30 eager"),
    ),
    Case(
        "loaded_again", "loaded_again.py", "--cpu-pool 512M", "variables_kept", "60",
        holder=r"served\[\*\]", remedy=r"served|version|model", never=(NUMPY, FRAGMENTED), mended=Mended("1"),
    ),
    Case(
        "cached_variables", "cached_variables.py", "--cpu-pool 400M", "variables_kept",
        holder=r"adapter|lru_cache", remedy=r"maxsize|bound", never=(NUMPY, FRAGMENTED),
        mended=Mended(environment={"ADAPTERS": "8"}),
    ),
    Case(
        "tape_over_loop", "tape_over_loop.py", "--cpu-pool 512M", "tape_open", "1000",
        remedy=r"tape", never=(NUMPY, FRAGMENTED), mended=Mended("50"),
    ),
    Case(
        "array_in_fit", "array_in_fit.py", "--cpu-pool 512M", "input_on_device", "array",
        remedy=r"batch|generator|tf\.data", never=("does not explain", FRAGMENTED), mended=Mended("batches"),
    ),
    Case(
        "array_in_fit_passes", "array_in_fit.py", "--cpu-pool 1500M", "input_on_device|none", "array", fails=False,
        never=("does not explain", FRAGMENTED),
    ),
    Case(
        "array_in_fit_gpu", "array_in_fit.py", "--growth on --memory-limit 512M", "input_on_device", "array",
        remedy=r"batch|generator|tf\.data", never=("does not explain",), mended=Mended("batches"), on_gpu=True,
    ),
    Case(
        "large_evaluation", "large_evaluation.py", "--cpu-pool 220M", "step_larger_than_before", "256",
        remedy=r"batch", never=(FRAGMENTED,), mended=Mended("16"),
    ),
    Case(
        "longest_batch", "longest_batch.py", "--cpu-pool 700M", "step_larger_than_before",
        remedy=r"length|shape|batch|size", never=(FRAGMENTED, r"e\+04"),
        mended=Mended(environment={"MAX_LENGTH": "256"}),
    ),
    Case(
        "batch_from_environment", "batch_from_environment.py", "--cpu-pool 300M",
        "limit_too_small|step_larger_than_before", environment={"BATCH": "160"}, remedy=r"batch", never=(FRAGMENTED,),
        mended=Mended(environment={"BATCH": "64"}), compiled=True,
    ),
    Case(
        "batch_that_fits", "batch_from_environment.py", "--cpu-pool 300M", "none", environment={"BATCH": "64"},
        never=HEALTHY, compiled=True, fails=False,
    ),
    Case(
        "grown_by_concat", "grown_by_concat.py", "--cpu-pool 512M", "grown_by_copying", "device",
        remedy=r"concat|host|numpy", never=(FRAGMENTED,), mended=Mended("host"),
    ),
    Case(
        "dense_gradient", "dense_gradient.py", "--cpu-pool 250M", "dense_gradient", "all",
        remedy=r"IndexedSlices|rows|sparse", never=(FRAGMENTED,), mended=Mended("rows"),
    ),
    Case("mirrored", "mirrored.py", "--cpu-pool 1G", "replicas|none", "2", never=HEALTHY, fails=False),
    Case("not_mirrored", "mirrored.py", "--cpu-pool 1G", "none", "1", never=HEALTHY, fails=False),
    Case(
        "mixed_precision", "mixed_precision.py", "--cpu-pool 2G", "none", "mixed_bfloat16", never=HEALTHY, fails=False
    ),
    Case("single_precision", "mixed_precision.py", "--cpu-pool 2G", "none", "float32", never=HEALTHY, fails=False),
    Case(
        "shuffle_tensors", "shuffle_tensors.py", "--cpu-pool 700M", "dataset_buffer", "1000",
        remedy=r"shuffle|buffer", never=(FRAGMENTED, NUMPY), mended=Mended("50"),
    ),
    Case(
        "shuffle_arrays", "shuffle_arrays.py", "--cpu-pool 700M", "dataset_buffer", "1000",
        remedy=r"shuffle|buffer", never=(FRAGMENTED, NUMPY), mended=Mended("50"),
    ),
    Case(
        "function_in_loop", "function_in_loop.py", "--cpu-pool 512M", "constants_captured", "each-epoch",
        remedy=r"once|argument|outside", never=(FRAGMENTED, NUMPY), mended=Mended("once"),
    ),
    Case(
        "history", "history.ipynb", "--cpu-pool 300M", "notebook_history", holder=r"Out|_",
        remedy=r";|%reset", never=(FRAGMENTED,), mended=Mended(script="history_mended.ipynb"),
    ),
    Case(
        "new_generator", "new_generator.py", "--cpu-pool 512M", "host_growth", "anew",
        holder=r"generator", remedy=r"Dataset|once|generator", never=("XLA",), mended=Mended("once"), fails=False,
    ),
    Case(
        "two_workers", "two_workers.py", "--cpu-pool 600M", "none", never=(r"(?<!together )129\.\d MiB", *HEALTHY),
        fails=False,
    ),
    Case(
        "fast_leak", "fast_leak.py", "--cpu-pool 500M", "tensors_kept", "losses", holder=r"history",
        remedy=r"float|numpy|mean", never=("Nothing needs to be changed",), mended=Mended("means"), fails=False,
    ),
    Case("means_kept", "fast_leak.py", "--cpu-pool 500M", "none", "means", never=HEALTHY, fails=False),
    Case(
        "three_frameworks", "three_frameworks.py", "--growth on", "other_framework", holder=r"JAX|PyTorch|CuPy",
        never=("Most likely another library",), fails=False, on_gpu=True,
    ),
)  # fmt: skip
