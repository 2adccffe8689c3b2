"""The cases: what is run, what is true of it, and what must not be said about it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A *command*, run in ``scripts/`` under ``record`` with *options*, and the truth about it.

    Variables may come before the command's script, as in a shell. ``cause`` are the keys that are true, between ``|``.
    ``mended`` is the command that passes with the same options. ``holder`` and ``remedy`` are regular expressions that
    must be found in what the verdict says; with ``None`` everything is accepted. ``never`` is one that may not be found
    in the report. ``fails`` is how the run ends.
    """

    name: str
    command: str
    options: str
    cause: str
    mended: str | None = None
    holder: str | None = None
    remedy: str | None = None
    never: str | None = None
    fails: bool = True
    on_gpu: bool = False
    in_ci: bool = False

    @property
    def causes(self) -> set[str]:
        """The causes that are true."""
        return set(self.cause.split("|"))


NUMPY = r"tensor\.numpy\(\)"
NUMPY_OR_FLOAT = r"numpy|float|host"

CASES = (
    # Without the models in the list, TensorFlow keeps their memory: another process helps, or to run eagerly.
    Case("trials_keep_models", "trials_keep_models.py models", "--cpu-pool 512M", "variables_kept",
         "trials_in_processes.py", holder=r"search\.done\[\*\]\[1\]", remedy="process"),
    Case("trials_keep_models_eagerly", "trials_keep_models.py models eager", "--cpu-pool 512M", "variables_kept",
         "trials_keep_models.py losses eager", holder=r"search\.done\[\*\]\[1\]", remedy="model|process"),
    Case("models_in_loop", "models_in_loop.py 5", "--cpu-pool 1G", "runtime_keeps", "models_in_loop.py 5 eager",
         remedy="process|run_eagerly", never="Nothing needs to be changed", fails=False),
    Case("models_in_loop_fails", "models_in_loop.py 30", "--cpu-pool 700M", "runtime_keeps",
         "models_in_loop.py 15 eager", remedy="process|run_eagerly"),
    Case("loaded_again", "loaded_again.py 60", "--cpu-pool 512M", "variables_kept", "loaded_again.py 1",
         holder=r"served\[\*\]", remedy="served|version|model"),
    Case("cached_variables", "cached_variables.py", "--cpu-pool 400M", "variables_kept",
         "ADAPTERS=8 cached_variables.py", holder="adapter|lru_cache", remedy="maxsize|bound", in_ci=True),
    Case(
        "tape_over_loop", "tape_over_loop.py 1000", "--cpu-pool 512M", "tape_open", "tape_over_loop.py 50",
        remedy="tape", in_ci=True,
    ),
    Case(
        "array_in_fit", "array_in_fit.py array", "--cpu-pool 512M", "input_on_device", "array_in_fit.py batches",
        remedy=r"batch|generator|tf\.data", never="does not explain", in_ci=True,
    ),
    Case(
        "array_in_fit_passes", "array_in_fit.py array", "--cpu-pool 1500M", "input_on_device|none",
        never="does not explain", fails=False,
    ),
    Case(
        "array_in_fit_gpu", "array_in_fit.py array", "--growth on --memory-limit 512M", "input_on_device",
        "array_in_fit.py batches", remedy=r"batch|generator|tf\.data", never="does not explain", on_gpu=True,
    ),
    Case(
        "large_evaluation", "large_evaluation.py 256", "--cpu-pool 220M", "step_larger_than_before",
        "large_evaluation.py 16", holder="in evaluate", remedy="batch", in_ci=True,
    ),
    Case(
        "predict_whole", "predict_whole.py 1", "--cpu-pool 250M", "tensors_kept", "predict_whole.py 20",
        remedy="predict for parts",
    ),
    Case(
        "longest_batch", "longest_batch.py", "--cpu-pool 700M", "step_larger_than_before",
        "MAX_LENGTH=256 longest_batch.py", remedy="length|shape|batch|size", never=r"e\+04",
    ),
    Case(
        "batch_from_environment", "BATCH=160 batch_from_environment.py", "--cpu-pool 300M",
        "limit_too_small|step_larger_than_before", "BATCH=64 batch_from_environment.py", remedy="batch",
    ),
    Case(
        "batch_that_fits", "BATCH=64 batch_from_environment.py", "--cpu-pool 300M", "none", fails=False,
    ),
    Case(
        "grown_by_concat", "grown_by_concat.py device", "--cpu-pool 512M", "grown_by_copying",
        "grown_by_concat.py host", remedy="concat|host|numpy", in_ci=True,
    ),
    # Adam itself makes the gradient dense, also that of a few rows.
    Case(
        "dense_gradient", "dense_gradient.py all adam", "--cpu-pool 250M", "dense_gradient",
        "dense_gradient.py rows adagrad", remedy="IndexedSlices|rows|sparse", in_ci=True,
    ),
    Case(
        "dense_gradient_adagrad", "dense_gradient.py all adagrad", "--cpu-pool 250M", "dense_gradient",
        "dense_gradient.py rows adagrad", remedy="IndexedSlices|rows|sparse",
    ),
    Case("mirrored", "mirrored.py 2", "--cpu-pool 1G", "none", fails=False),
    Case("not_mirrored", "mirrored.py 1", "--cpu-pool 1G", "none", fails=False),
    Case("mixed_precision", "mixed_precision.py mixed_bfloat16", "--cpu-pool 2G", "none", fails=False),
    Case("single_precision", "mixed_precision.py float32", "--cpu-pool 2G", "none", fails=False),
    Case(
        "shuffle_tensors", "shuffle_tensors.py 1000", "--cpu-pool 700M", "dataset_buffer", "shuffle_tensors.py 50",
        remedy="shuffle|buffer",
    ),
    Case(
        "shuffle_arrays", "shuffle_arrays.py 1000", "--cpu-pool 700M", "dataset_buffer", "shuffle_arrays.py 50",
        remedy="shuffle|buffer",
    ),
    Case(
        "function_in_loop", "function_in_loop.py each-epoch", "--cpu-pool 512M", "constants_captured",
        "function_in_loop.py once", remedy="once|argument|outside",
    ),
    Case(
        "history", "history.ipynb", "--cpu-pool 300M", "notebook_history", "history_mended.ipynb", holder="Out|_",
        remedy=";|%reset",
    ),
    Case(
        "new_generator", "new_generator.py anew", "--cpu-pool 512M", "host_growth", "new_generator.py once",
        holder="generator", remedy="Dataset|once|generator", fails=False,
    ),
    Case(
        "two_workers", "two_workers.py", "--cpu-pool 600M", "none", never=r"(?<!together )129\.\d MiB", fails=False,
    ),
    Case(
        "fast_leak", "fast_leak.py losses", "--cpu-pool 500M", "tensors_kept", "fast_leak.py means", holder="history",
        remedy="float|numpy|mean", never="Nothing needs to be changed", fails=False,
    ),
    Case("means_kept", "fast_leak.py means", "--cpu-pool 500M", "none", fails=False),
    Case(
        "losses_in_attribute", "losses_in_attribute.py tensors", "--cpu-pool 200M", "tensors_kept",
        "losses_in_attribute.py numbers", holder="losses", remedy=NUMPY_OR_FLOAT,
    ),
    Case(
        "predictions_collected", "predictions_collected.py", "--cpu-pool 300M", "tensors_kept",
        "ON=host predictions_collected.py", holder="features", remedy=NUMPY_OR_FLOAT,
    ),
    Case(
        "history_of_tensors", "history_of_tensors.py", "--cpu-pool 300M", "tensors_kept",
        "EVERY=50 history_of_tensors.py", holder=r"history\['attention'\]",
    ),
    Case(
        "callback_keeps_outputs", "callback_keeps_outputs.py 1000", "--cpu-pool 300M", "tensors_kept",
        "callback_keeps_outputs.py 2", holder="outputs", remedy=NUMPY_OR_FLOAT,
    ),
    Case(
        "folds_in_dict", "folds_in_dict.py kept", "--cpu-pool 400M", "variables_kept", "folds_in_dict.py written",
        holder="folds",
    ),
    Case(
        "optimizers_remade", "optimizers_remade.py optimizers", "--cpu-pool 400M", "variables_kept",
        "optimizers_remade.py rates", holder="restarts",
    ),
    Case(
        "snapshots_in_memory", "snapshots_in_memory.py", "--cpu-pool 300M", "tensors_kept",
        "LAST=2 snapshots_in_memory.py", holder="snapshots",
    ),
    Case(
        "variables_each_call", "variables_each_call.py batches", "--cpu-pool 250M", "variables_kept",
        "variables_each_call.py classes", holder="averages",
    ),
    Case("inner_loop", "inner_loop.py 60", "--cpu-pool 400M", "tape_open", "inner_loop.py 5", remedy="tape|step"),
    Case(
        "tapes_kept", "tapes_kept.py all", "--cpu-pool 400M", "tape_open|tensors_kept", "tapes_kept.py last",
        holder="tapes", remedy="tape",
    ),
    Case(
        "number_as_argument", "number_as_argument.py number", "--cpu-pool 200M", "constants_captured|retracing",
        "number_as_argument.py tensor", remedy=r"tf\.constant|tensor|argument",
    ),
    Case(
        "cached_dataset", "cached_dataset.py", "--cpu-pool 500M", "dataset_buffer", "CACHE=0 cached_dataset.py",
        remedy="cache", in_ci=True,
    ),
    Case(
        "cached_and_shuffled", "SHUFFLE=50 cached_dataset.py", "--cpu-pool 500M", "dataset_buffer",
        "SHUFFLE=50 CACHE=0 cached_dataset.py", holder="cache", never="shuffle buffer",
    ),
    Case(
        "prefetch_many", "prefetch_many.py 64", "--cpu-pool 400M", "dataset_buffer", "prefetch_many.py 2",
        remedy="prefetch|buffer",
    ),
    Case(
        "remainder_in_last_batch", "remainder_in_last_batch.py", "--cpu-pool 250M", "step_larger_than_before",
        "REMAINDER=apart remainder_in_last_batch.py", remedy="batch|size|shape",
    ),
    Case(
        "progressive_resizing", "progressive_resizing.py", "--cpu-pool 300M", "step_larger_than_before",
        "MAX_SIZE=128 progressive_resizing.py", remedy="batch|size|shape",
    ),
    Case(
        "accumulated_gradients", "accumulated_gradients.py collected", "--cpu-pool 300M", "tensors_kept",
        "accumulated_gradients.py added", holder="accumulated", never=NUMPY,
    ),
    Case(
        "batch_too_large", "batch_too_large.py 64", "--cpu-pool 300M", "limit_too_small", "batch_too_large.py 8",
        remedy="batch", in_ci=True,
    ),
    Case(
        "many_callers", "many_callers.py 16", "--cpu-pool 230M", "limit_too_small", "many_callers.py 1",
        remedy="fewer calls", never="as a whole",
    ),
    Case(
        "model_too_large", "model_too_large.py", "--cpu-pool 400M", "limit_too_small", "WIDTH=1024 model_too_large.py",
    ),
    Case(
        "pairwise", "pairwise.py 2500", "--cpu-pool 400M", "limit_too_small|step_larger_than_before", "pairwise.py 100",
    ),
    Case(
        "unfrozen", "unfrozen.py", "--cpu-pool 330M", "step_larger_than_before|limit_too_small",
        "UNFROZEN=1 unfrozen.py",
    ),
    Case(
        "exceptions_kept", "exceptions_kept.py errors", "--cpu-pool 200M", "tensors_kept", "exceptions_kept.py texts",
        holder="errors|features",
    ),
    Case("penalties", "penalties.py", "--cpu-pool 300M", "tensors_kept", "TASKS=2 penalties.py", holder="penalties"),
    Case(
        "queue_of_batches", "queue_of_batches.py", "--cpu-pool 400M", "tensors_kept", "MAXSIZE=4 queue_of_batches.py",
        holder="waiting", never=NUMPY,
    ),
    Case(
        "cycle_of_dataset", "cycle_of_dataset.py cycle", "--cpu-pool 250M", "tensors_kept",
        "cycle_of_dataset.py repeat", holder="batches",
    ),
    Case("list_of_dataset", "list_of_dataset.py list", "--cpu-pool 300M", "tensors_kept", "list_of_dataset.py shuffle"),
    Case(
        "layer_keeps_maps", "layer_keeps_maps.py", "--cpu-pool 400M", "tensors_kept", "PLOT=0 layer_keeps_maps.py",
        holder="maps",
    ),
    Case(
        "replay_memory", "MEMORY=100000 replay_memory.py", "--cpu-pool 300M", "tensors_kept",
        "MEMORY=500 replay_memory.py", holder="memory",
    ),
    Case("replay_memory_bounded", "MEMORY=500 replay_memory.py", "--cpu-pool 300M", "none", fails=False,
         in_ci=True),
    Case(
        "decode_cache", "decode_cache.py 100000", "--cpu-pool 120M", "grown_by_copying", "decode_cache.py 256",
        remedy="concat|window",
    ),
    Case(
        "stacked_at_the_end", "stacked_at_the_end.py device", "--cpu-pool 500M", "grown_by_copying|tensors_kept",
        "stacked_at_the_end.py host", remedy="numpy|host",
    ),
    Case(
        "every_other_dropped", "every_other_dropped.py in-turn", "--cpu-pool 400M", "fragmentation",
        "every_other_dropped.py apart", in_ci=True,
    ),
    Case(
        "compiled_step", "compiled_step.py", "--cpu-pool 200M", "limit_too_small",
        "BATCH=1000 compiled_step.py",
    ),
    Case(
        "frames_on_host", "frames_on_host.py 100000", "--cpu-pool 200M", "host_growth", "frames_on_host.py 40",
        fails=False,
    ),
    Case("frames_without_pool", "frames_on_host.py 100000", "", "host_growth", "frames_on_host.py 40", fails=False),
    Case("frames_bounded", "frames_on_host.py 40", "--cpu-pool 200M", "none", fails=False),
    Case(
        "many_shapes", "many_shapes.py", "--cpu-pool 200M", "retracing", "PAD=1 many_shapes.py", fails=False,
    ),
    Case("set_too_late", "set_too_late.py", "--cpu-pool 200M", "setting_without_effect|none", fails=False),
    Case("wrong_shape", "wrong_shape.py", "--cpu-pool 200M", "not_memory"),
    Case("missing_key", "missing_key.py", "--cpu-pool 200M", "not_memory", in_ci=True),
    Case("terminated", "terminated.py", "--cpu-pool 200M", "not_memory"),
    Case(
        "smaller_batch_retried", "smaller_batch_retried.py", "--cpu-pool 300M",
        "none|limit_too_small|step_larger_than_before", fails=False,
    ),
    Case("healthy_fit", "healthy_fit.py", "--cpu-pool 300M", "none", fails=False),
    Case("healthy_loop", "healthy_loop.py", "--cpu-pool 300M", "none", fails=False),
    Case("healthy_without_pool", "healthy_loop.py", "", "none", fails=False),
    Case("warm_up", "warm_up.py", "--cpu-pool 400M", "none", fails=False),
    # What is in a function's local variables, as in most programs: here in main's.
    Case(
        "pending_gradients", "pending_gradients.py collected", "--cpu-pool 600M", "tensors_kept",
        "pending_gradients.py added", holder="pending", remedy="add", never=NUMPY, in_ci=True,
    ),
    Case(
        "median_metric", "median_metric.py kept", "--cpu-pool 400M", "grown_by_copying", "median_metric.py counted",
        holder="errors", remedy="concat|host|numpy", never="fragmented",
    ),
    Case(
        "latents_logged", "latents_logged.py tensors", "--cpu-pool 96M", "tensors_kept", "latents_logged.py arrays",
        holder=r"log\.", remedy=NUMPY, never="Who holds it",
    ),
    Case(
        "large_tables", "large_tables.py adam", "--cpu-pool 480M", "limit_too_small", "large_tables.py sgd",
        remedy="smaller model|SGD", never="IndexedSlices|tape|smaller batch",
    ),
    Case(
        "large_tables_by_xla", "large_tables.py adam xla", "--cpu-pool 480M", "limit_too_small",
        "large_tables.py sgd xla", remedy="smaller model|SGD", never="IndexedSlices|tape|smaller batch|activations",
    ),
    Case(
        "cycle_in_main", "cycle_in_main.py cycle", "--cpu-pool 400M", "tensors_kept", "cycle_in_main.py again",
        holder="endless",
    ),
    Case(
        "deferred_reports", "deferred_reports.py tensors", "--cpu-pool 400M", "tensors_kept",
        "deferred_reports.py counts", holder="_jobs", remedy=NUMPY_OR_FLOAT,
    ),
    Case(
        "broadcast_residual", "broadcast_residual.py columns", "--cpu-pool 600M", "limit_too_small",
        "broadcast_residual.py rows", remedy="shape",
    ),
    Case(
        "long_document", "long_document.py 2600", "--cpu-pool 600M", "step_larger_than_before", "long_document.py 512",
        remedy="length", never="_Mkl",
    ),
    Case(
        "one_hot_labels", "one_hot_labels.py 64", "--cpu-pool 600M", "limit_too_small", "one_hot_labels.py 8",
        remedy="batch", never="GradientTape keeps",
    ),
    Case(
        "unrolled_solver", "unrolled_solver.py 120", "--cpu-pool 600M", "tape_open", "unrolled_solver.py 8",
        remedy="tape",
    ),
    Case(
        "words_one_hot", "words_one_hot.py dense", "--cpu-pool 420M", "limit_too_small", "words_one_hot.py sparse",
        remedy="batch", never="before, at most",
    ),
    Case(
        "batch_halved", "batch_halved.py 256", "--cpu-pool 150M", "none|limit_too_small", "batch_halved.py 16",
        never="before, at most|Out of memory", fails=False,
    ),
    Case(
        "similar_items", "similar_items.py matrix", "--cpu-pool 200M", "host_growth", "similar_items.py rows",
        never="Memory was not the cause",
    ),
    Case(
        "weights_averaged", "weights_averaged.py tensors", "--cpu-pool 150M", "tensors_kept",
        "weights_averaged.py arrays", holder=r"callbacks\[\*\]\.snapshots", remedy=NUMPY_OR_FLOAT,
        never="add the gradients",
    ),
    Case(
        "labels_missing", "labels_missing.py /nowhere/labels.json", "--cpu-pool 400M", "not_memory", never="pathlib",
    ),
    Case(
        "records_buffered", "records_buffered.py tensors", "--cpu-pool 250M", "tensors_kept",
        "records_buffered.py losses", holder=r"handlers\[\*\]\.buffer", remedy=NUMPY_OR_FLOAT,
    ),
    Case(
        "session_store", "session_store.py 60", "--cpu-pool 250M", "tensors_kept", "session_store.py 8",
        holder=r"store\._by_user\[\*\]\.past", remedy="bound",
    ),
    Case(
        "open_shards", "open_shards.py 64", "--cpu-pool 200M", "dataset_buffer", "open_shards.py 8",
        holder="interleave", remedy="cycle_length", never="smaller batches",
    ),
    Case("map_ahead", "map_ahead.py 24", "--cpu-pool 190M", "dataset_buffer", "map_ahead.py 2",
         remedy="keep less", never="smaller batches|NumPy"),
    Case("volumes_cut", "volumes_cut.py 400", "--cpu-pool 130M", "dataset_buffer", "volumes_cut.py 100",
         holder="flat_map", remedy="smaller pieces", never="smaller batches"),
    Case("influence", "influence.py 64", "--cpu-pool 400M", "limit_too_small", "influence.py 8", remedy="rows",
         never="smaller model"),
    Case("long_episodes", "long_episodes.py 400", "--cpu-pool 240M", "tape_open", "long_episodes.py 30", remedy="tape",
         never="smaller model"),
    Case("vectors_assigned", "vectors_assigned.py", "--cpu-pool 150M", "constants_captured", "vectors_assigned.py fed",
         holder=r"tf\.assign\(self\.table, array\)", remedy="placeholder", never="smaller batches|larger pool"),
    Case("loss_of_columns", "loss_of_columns.py columns", "--cpu-pool 512M", "limit_too_small",
         "loss_of_columns.py rows", remedy="shape", never="smaller model|smaller batches"),
    Case("long_recording", "long_recording.py 3000", "--cpu-pool 512M", "step_larger_than_before",
         "long_recording.py 250", remedy="length|shorter", never=r"[3-9],\d\d\d rounds|smaller model"),
    # What people write after tutorials.
    Case("searched_models", "searched_models.py model", "--cpu-pool 400M", "variables_kept", "searched_models.py score",
         holder=r"trials\[\*\]\.model", remedy="process", never="set_weights"),
    Case("whole_pictures", "whole_pictures.py 4", "--cpu-pool 640M", "limit_too_small", "whole_pictures.py 1",
         remedy="batch", never="before, at most"),
    Case("momentum_queue", "momentum_queue.py 1000000", "--cpu-pool 150M", "grown_by_copying", "momentum_queue.py 4096",
         holder=r"contrast\.negatives", remedy="rows", never="smaller batches|larger pool"),
    Case(
        "futures_kept", "futures_kept.py kept", "--cpu-pool 300M", "tensors_kept", "futures_kept.py popped",
        holder="jobs", remedy="bound", never="no path",
    ),
    Case("scan_gradient", "scan_gradient.py 2000", "--cpu-pool 256M", "limit_too_small", "scan_gradient.py 200",
         holder="fit_step", remedy="shorter", never=r"smaller model|before, at most"),
    Case(
        "compiled_again", "compiled_again.py each", "--cpu-pool 200M", "runtime_keeps", "compiled_again.py once",
        holder="TensorFlow", remedy="one optimizer",
    ),
    # As Keras does by itself on a GPU: the values of variables are results of compiled calls.
    Case(
        "compiled_again_by_xla", "compiled_again.py each xla", "--cpu-pool 200M", "runtime_keeps",
        "compiled_again.py once xla", holder="TensorFlow", remedy="one optimizer", never="Who holds it|buffers",
    ),
    Case(
        "overlap_metric", "overlap_metric.py masks", "--cpu-pool 240M", "tensors_kept", "overlap_metric.py sums",
        holder="masks", remedy=NUMPY_OR_FLOAT, never="tape for each|smaller batches",
    ),
    Case(
        "hardest_images", "hardest_images.py slices", "--cpu-pool 200M", "tensors_kept", "hardest_images.py copies",
        holder="hardest", remedy=NUMPY_OR_FLOAT, never="made ahead|smaller batches",
    ),
    Case(
        "three_frameworks", "three_frameworks.py", "--growth on", "other_framework", holder="JAX|PyTorch|CuPy",
        never="Most likely another library", fails=False, on_gpu=True,
    ),
)  # fmt: skip
