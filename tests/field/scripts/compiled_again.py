"""A schedule of learning rates: a new compile for each, or one optimizer whose rate is set."""

import sys

import keras
import numpy as np

jit = "xla" in sys.argv or "auto"
model = keras.Sequential([
    keras.layers.Input((512,)),
    keras.layers.Dense(1536, activation="relu"),
    keras.layers.Dense(1536, activation="relu"),
    keras.layers.Dense(1),
])  # fmt: skip
model.compile(keras.optimizers.Adam(1e-3), "mse", jit_compile=jit)
x = np.random.default_rng(4).random((256, 512), dtype=np.float32)
for phase in range(15):
    rate = 1e-3 * 0.9**phase
    if sys.argv[1] == "each":
        model.compile(keras.optimizers.Adam(rate), "mse", jit_compile=jit)
    else:
        model.optimizer.learning_rate.assign(rate)
    fitted = model.fit(x, x[:, 0], batch_size=64, epochs=1, verbose=0)
    print(f"phase {phase}: loss {fitted.history['loss'][-1]:.4f}", flush=True)
