# TensorFlow with growth, then JAX, PyTorch and CuPy in the same process
import os
import time

import tensorflow as tf

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
x = tf.random.normal((1024, 1024, 64))
time.sleep(3)
import jax.numpy as jnp  # noqa: E402

j = jnp.ones((1024, 1024, 256)).block_until_ready()
time.sleep(3)
import torch  # noqa: E402

t = torch.ones((1024, 1024, 128), device="cuda")
time.sleep(3)
import cupy  # noqa: E402

c = cupy.ones((1024, 1024, 64), dtype="f4")
time.sleep(4)
