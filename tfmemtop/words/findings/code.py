"""Lines for the script that several findings propose."""

BEHIND_THE_IMPORT = "# right after the import, before anything else:"

GROWTH = (
    "import tensorflow as tf",
    BEHIND_THE_IMPORT,
    'for gpu in tf.config.list_physical_devices("GPU"):',
    "    tf.config.experimental.set_memory_growth(gpu, True)",
)
