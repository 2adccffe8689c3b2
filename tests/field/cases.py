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
NUMPY_OR_FLOAT = r"numpy|float|host"
HEALTHY = (r"Out of memory:", r"pool ran out", r"(?<!no)(?<!not a) leak\b", NUMPY)
FRAGMENTED = r"(is|was|were) fragmented"

CASES = (
    # Without the models in the list, TensorFlow keeps their memory: another process helps, or to run eagerly.
    Case(
        "trials_keep_models", "trials_keep_models.py", "--cpu-pool 512M", "variables_kept", "models",
        holder=r"search\.done\[\*\]\[1\]", remedy=r"process", never=(NUMPY, FRAGMENTED), compiled=True,
        mended=Mended(script="trials_in_processes.py"),
    ),
    Case(
        "trials_keep_models_eagerly", "trials_keep_models.py", "--cpu-pool 512M", "variables_kept", "models eager",
        holder=r"search\.done\[\*\]\[1\]", remedy=r"model|process", never=(NUMPY, FRAGMENTED),
        mended=Mended("losses eager"),
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
    # Adam itself makes the gradient dense, also that of a few rows.
    Case(
        "dense_gradient", "dense_gradient.py", "--cpu-pool 250M", "dense_gradient", "all adam",
        remedy=r"IndexedSlices|rows|sparse", never=(FRAGMENTED,), mended=Mended("rows adagrad"),
    ),
    Case(
        "dense_gradient_adagrad", "dense_gradient.py", "--cpu-pool 250M", "dense_gradient", "all adagrad",
        remedy=r"IndexedSlices|rows|sparse", never=(FRAGMENTED,), mended=Mended("rows adagrad"),
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
        holder=r"generator", remedy=r"Dataset|once|generator", mended=Mended("once"), fails=False,
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
        "losses_in_attribute", "losses_in_attribute.py", "--cpu-pool 200M", "tensors_kept", "tensors",
        holder=r"losses", remedy=NUMPY_OR_FLOAT, never=(FRAGMENTED,), mended=Mended("numbers"),
    ),
    Case(
        "predictions_collected", "predictions_collected.py", "--cpu-pool 300M", "tensors_kept",
        holder=r"features", remedy=NUMPY_OR_FLOAT, never=(FRAGMENTED,), mended=Mended(environment={"ON": "host"}),
    ),
    Case(
        "history_of_tensors", "history_of_tensors.py", "--cpu-pool 300M", "tensors_kept",
        holder=r"history\['attention'\]", never=(FRAGMENTED,), mended=Mended(environment={"EVERY": "50"}),
    ),
    Case(
        "callback_keeps_outputs", "callback_keeps_outputs.py", "--cpu-pool 300M", "tensors_kept", "1000",
        holder=r"outputs", remedy=NUMPY_OR_FLOAT, never=(FRAGMENTED,), mended=Mended("2"),
    ),
    Case(
        "folds_in_dict", "folds_in_dict.py", "--cpu-pool 400M", "variables_kept", "kept",
        holder=r"folds", never=(NUMPY, FRAGMENTED), mended=Mended("written"),
    ),
    Case(
        "optimizers_remade", "optimizers_remade.py", "--cpu-pool 400M", "variables_kept", "optimizers",
        holder=r"restarts", never=(NUMPY, FRAGMENTED), mended=Mended("rates"),
    ),
    Case(
        "snapshots_in_memory", "snapshots_in_memory.py", "--cpu-pool 300M", "tensors_kept",
        holder=r"snapshots", never=(FRAGMENTED,), mended=Mended(environment={"LAST": "2"}),
    ),
    Case(
        "variables_each_call", "variables_each_call.py", "--cpu-pool 250M", "variables_kept", "batches",
        holder=r"averages", never=(NUMPY, FRAGMENTED), mended=Mended("classes"),
    ),
    Case(
        "inner_loop", "inner_loop.py", "--cpu-pool 400M", "tape_open", "60", remedy=r"tape|step",
        never=(NUMPY, FRAGMENTED), mended=Mended("5"),
    ),
    Case(
        "tapes_kept", "tapes_kept.py", "--cpu-pool 400M", "tape_open|tensors_kept", "all", holder=r"tapes",
        remedy=r"tape", never=(NUMPY, FRAGMENTED), mended=Mended("last"),
    ),
    Case(
        "number_as_argument", "number_as_argument.py", "--cpu-pool 200M", "constants_captured|retracing", "number",
        remedy=r"tf\.constant|tensor|argument", never=(NUMPY, FRAGMENTED), mended=Mended("tensor"),
    ),
    Case(
        "cached_dataset", "cached_dataset.py", "--cpu-pool 500M", "dataset_buffer", remedy=r"cache",
        never=(NUMPY, FRAGMENTED), mended=Mended(environment={"CACHE": "0"}),
    ),
    Case(
        "prefetch_many", "prefetch_many.py", "--cpu-pool 400M", "dataset_buffer", "64", remedy=r"prefetch|buffer",
        never=(NUMPY, FRAGMENTED), mended=Mended("2"),
    ),
    Case(
        "remainder_in_last_batch", "remainder_in_last_batch.py", "--cpu-pool 250M", "step_larger_than_before",
        remedy=r"batch|size|shape", never=(FRAGMENTED,), mended=Mended(environment={"REMAINDER": "apart"}),
    ),
    Case(
        "progressive_resizing", "progressive_resizing.py", "--cpu-pool 300M", "step_larger_than_before",
        remedy=r"batch|size|shape", never=(NUMPY, FRAGMENTED), mended=Mended(environment={"MAX_SIZE": "128"}),
    ),
    Case(
        "accumulated_gradients", "accumulated_gradients.py", "--cpu-pool 300M", "tensors_kept", "collected",
        holder=r"accumulated", never=(NUMPY, FRAGMENTED), mended=Mended("added"),
    ),
    Case(
        "batch_too_large", "batch_too_large.py", "--cpu-pool 300M", "limit_too_small", "64", remedy=r"batch",
        never=(NUMPY, FRAGMENTED, r"\bleak"), mended=Mended("8"),
    ),
    Case(
        "model_too_large", "model_too_large.py", "--cpu-pool 400M", "limit_too_small",
        never=(NUMPY, FRAGMENTED, r"\bleak"), mended=Mended(environment={"WIDTH": "1024"}),
    ),
    Case(
        "pairwise", "pairwise.py", "--cpu-pool 400M", "limit_too_small|step_larger_than_before", "2500",
        never=(NUMPY, FRAGMENTED, r"\bleak"), mended=Mended("100"),
    ),
    Case(
        "unfrozen", "unfrozen.py", "--cpu-pool 330M", "step_larger_than_before|limit_too_small",
        never=(NUMPY, FRAGMENTED), mended=Mended(environment={"UNFROZEN": "1"}),
    ),
    Case(
        "exceptions_kept", "exceptions_kept.py", "--cpu-pool 200M", "tensors_kept", "errors",
        holder=r"errors|features", never=(FRAGMENTED,), mended=Mended("texts"),
    ),
    Case(
        "penalties", "penalties.py", "--cpu-pool 300M", "tensors_kept", holder=r"penalties",
        never=(FRAGMENTED,), mended=Mended(environment={"TASKS": "2"}),
    ),
    Case(
        "queue_of_batches", "queue_of_batches.py", "--cpu-pool 400M", "tensors_kept", holder=r"waiting",
        never=(NUMPY, FRAGMENTED), mended=Mended(environment={"MAXSIZE": "4"}),
    ),
    Case(
        "cycle_of_dataset", "cycle_of_dataset.py", "--cpu-pool 250M", "tensors_kept", "cycle", holder=r"batches",
        never=(FRAGMENTED,), mended=Mended("repeat"),
    ),
    Case(
        "list_of_dataset", "list_of_dataset.py", "--cpu-pool 300M", "tensors_kept", "list", holder=None,
        never=(FRAGMENTED,), mended=Mended("shuffle"),
    ),
    Case(
        "layer_keeps_maps", "layer_keeps_maps.py", "--cpu-pool 400M", "tensors_kept", holder=r"maps",
        never=(FRAGMENTED,), mended=Mended(environment={"PLOT": "0"}),
    ),
    Case(
        "replay_memory", "replay_memory.py", "--cpu-pool 300M", "tensors_kept", environment={"MEMORY": "100000"},
        holder=r"memory", never=(FRAGMENTED,), mended=Mended(environment={"MEMORY": "500"}),
    ),
    Case(
        "replay_memory_bounded", "replay_memory.py", "--cpu-pool 300M", "none", environment={"MEMORY": "500"},
        never=HEALTHY, fails=False,
    ),
    Case(
        "decode_cache", "decode_cache.py", "--cpu-pool 120M", "grown_by_copying", "100000", remedy=r"concat|window",
        never=(FRAGMENTED,), mended=Mended("256"),
    ),
    Case(
        "stacked_at_the_end", "stacked_at_the_end.py", "--cpu-pool 500M", "grown_by_copying|tensors_kept", "device",
        remedy=r"numpy|host", never=(FRAGMENTED,), mended=Mended("host"),
    ),
    Case(
        "every_other_dropped", "every_other_dropped.py", "--cpu-pool 400M", "fragmentation", "in-turn",
        never=(r"\bleak",), mended=Mended("apart"),
    ),
    Case(
        "compiled_step", "compiled_step.py", "--cpu-pool 200M", "xla_buffer|limit_too_small", compiled=True,
        never=(NUMPY, FRAGMENTED), mended=Mended(environment={"BATCH": "1000"}),
    ),
    Case(
        "frames_on_host", "frames_on_host.py", "--cpu-pool 200M", "host_growth", "100000", holder=None,
        mended=Mended("40"), fails=False,
    ),
    Case("frames_without_pool", "frames_on_host.py", "", "host_growth", "100000", mended=Mended("40"), fails=False),
    Case("frames_bounded", "frames_on_host.py", "--cpu-pool 200M", "none", "40", never=HEALTHY, fails=False),
    Case("many_shapes", "many_shapes.py", "--cpu-pool 200M", "retracing", mended=Mended(environment={"PAD": "1"}),
         fails=False),
    Case("set_too_late", "set_too_late.py", "--cpu-pool 200M", "setting_without_effect|none", fails=False),
    Case("wrong_shape", "wrong_shape.py", "--cpu-pool 200M", "not_memory", never=HEALTHY),
    Case("missing_key", "missing_key.py", "--cpu-pool 200M", "not_memory", never=HEALTHY),
    Case("terminated", "terminated.py", "--cpu-pool 200M", "not_memory", never=HEALTHY),
    Case(
        "smaller_batch_retried", "smaller_batch_retried.py", "--cpu-pool 450M",
        "none|limit_too_small|step_larger_than_before", never=(NUMPY, FRAGMENTED, r"\bleak"), fails=False,
    ),
    Case("healthy_fit", "healthy_fit.py", "--cpu-pool 300M", "none", never=HEALTHY, compiled=True, fails=False),
    Case("healthy_loop", "healthy_loop.py", "--cpu-pool 300M", "none", never=HEALTHY, fails=False),
    Case("healthy_without_pool", "healthy_loop.py", "", "none", never=HEALTHY, fails=False),
    Case("warm_up", "warm_up.py", "--cpu-pool 400M", "none", never=HEALTHY, fails=False),
    Case(
        "three_frameworks", "three_frameworks.py", "--growth on", "other_framework", holder=r"JAX|PyTorch|CuPy",
        never=("Most likely another library",), fails=False, on_gpu=True,
    ),
)  # fmt: skip
