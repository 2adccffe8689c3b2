"""Whether proposed limits hold: ``python -m tests.tools.limits [-j N] [--growth on|off|both] [NAME…]``.

Each of twenty trainings is recorded, with growth on and off on a GPU. Then it runs again under the limit that
``tfmemtop why --json`` proposes. A proposal holds if the program ends with exit code 0 under it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

START = """
import numpy as np, tensorflow as tf
layers, keras = tf.keras.layers, tf.keras
rng = np.random.default_rng(0)
def images(n, size, channels=3): return rng.random((n, size, size, channels), dtype=np.float32)
def words(n, length): return rng.integers(0, 1000, (n, length))
def labels(n, classes=10): return rng.integers(0, classes, n)
def fit(model, x, y, loss="sparse_categorical_crossentropy", optimizer="adam", **more):
    model.compile(optimizer, loss)
    return model.fit(x, y, epochs=more.pop("epochs", 2), batch_size=more.pop("batch_size", 32), verbose=0, **more)
"""

PROGRAMS = {
    "dense": """
        fit(keras.Sequential([layers.Dense(1024, "relu"), layers.Dense(10, "softmax")]), rng.random((2000, 512)), labels(2000))
    """,
    "validation_larger": """
        net = keras.Sequential([layers.Conv2D(16, 3, activation="relu"), layers.Flatten(), layers.Dense(10, "softmax")])
        fit(net, images(128, 32), labels(128), batch_size=8, validation_data=(images(256, 32), labels(256)), validation_batch_size=256)
    """,
    "evaluate_after": """
        net = keras.Sequential([layers.Conv2D(16, 3, activation="relu"), layers.Flatten(), layers.Dense(10, "softmax")])
        fit(net, images(128, 32), labels(128), batch_size=16)
        net.evaluate(images(512, 32), labels(512), batch_size=128, verbose=0)
        net.predict(images(256, 32), batch_size=64, verbose=0)
    """,
    "residual": """
        x = inputs = keras.Input((32, 32, 3))
        x = layers.Conv2D(32, 3, padding="same")(x)
        for _ in range(4):
            y = layers.BatchNormalization()(layers.Conv2D(32, 3, padding="same", activation="relu")(x))
            x = layers.Add()([x, layers.Conv2D(32, 3, padding="same")(y)])
        net = keras.Model(inputs, layers.Dense(10, "softmax")(layers.GlobalAveragePooling2D()(x)))
        fit(net, images(96, 32), labels(96), batch_size=16)
    """,
    "unet": """
        x = inputs = keras.Input((64, 64, 3))
        kept = []
        for n in (16, 32):
            x = layers.Conv2D(n, 3, padding="same", activation="relu")(x); kept.append(x); x = layers.MaxPool2D()(x)
        for n in (32, 16):
            x = layers.Concatenate()([layers.UpSampling2D()(x), kept.pop()]); x = layers.Conv2D(n, 3, padding="same", activation="relu")(x)
        fit(keras.Model(inputs, layers.Conv2D(1, 1)(x)), images(64, 64), images(64, 64, 1), "mse", batch_size=8)
    """,
    "lstm": """
        fit(keras.Sequential([layers.Embedding(1000, 64), layers.LSTM(64), layers.Dense(10, "softmax")]), words(256, 40), labels(256))
    """,
    "attention": """
        x = inputs = keras.Input((64,), dtype="int32")
        x = layers.Embedding(1000, 128)(x)
        for _ in range(2):
            x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 32)(x, x))
            x = layers.LayerNormalization()(x + layers.Dense(128)(layers.Dense(512, "relu")(x)))
        fit(keras.Model(inputs, layers.Dense(10, "softmax")(x[:, 0])), words(128, 64), labels(128), batch_size=16)
    """,
    "lengths": """
        net = keras.Sequential([layers.Embedding(1000, 128), layers.Conv1D(128, 5, padding="same"), layers.GlobalMaxPool1D(), layers.Dense(2, "softmax")])
        net.compile("adam", "sparse_categorical_crossentropy")
        for length in (32, 64, 200, 500, 100, 50): net.fit(words(64, length), labels(64, 2), verbose=0)
    """,
    "embedding": """
        fit(keras.Sequential([layers.Embedding(50000, 128), layers.GlobalAveragePooling1D(), layers.Dense(2, "softmax")]), words(512, 20), labels(512, 2))
    """,
    "gan": """
        g = keras.Sequential([layers.Dense(8 * 8 * 32, "relu"), layers.Reshape((8, 8, 32)), layers.Conv2DTranspose(16, 4, 2, "same"), layers.Conv2DTranspose(1, 4, 2, "same")])
        d = keras.Sequential([layers.Conv2D(16, 4, 2, "same"), layers.Flatten(), layers.Dense(1)])
        og, od, bce = keras.optimizers.Adam(), keras.optimizers.Adam(), keras.losses.BinaryCrossentropy(from_logits=True)
        @tf.function
        def step(real):
            with tf.GradientTape(persistent=True) as tape:
                fake = d(g(tf.random.normal((32, 64)))); true = d(real)
                lg = bce(tf.ones_like(fake), fake); ld = bce(tf.ones_like(true), true) + bce(tf.zeros_like(fake), fake)
            og.apply_gradients(zip(tape.gradient(lg, g.trainable_variables), g.trainable_variables))
            od.apply_gradients(zip(tape.gradient(ld, d.trainable_variables), d.trainable_variables))
        for _ in range(40): step(images(32, 32, 1))
    """,
    "own_loop": """
        w = [tf.Variable(tf.random.normal((512, 512))) for _ in range(6)]
        opt = keras.optimizers.Adam()
        for _ in range(60):
            with tf.GradientTape() as tape:
                x = tf.random.normal((256, 512))
                for each in w: x = tf.nn.relu(x @ each)
                loss = tf.reduce_mean(x)
            opt.apply_gradients(zip(tape.gradient(loss, w), w))
    """,
    "mixed": """
        keras.mixed_precision.set_global_policy("mixed_float16")
        net = keras.Sequential([layers.Dense(1024, "relu"), layers.Dense(1024, "relu"), layers.Dense(10, "softmax", dtype="float32")])
        fit(net, rng.random((1000, 256)), labels(1000), batch_size=64)
    """,
    "session": """
        tf1 = tf.compat.v1; tf1.disable_eager_execution()
        x = tf1.placeholder(tf.float32, (None, 512)); w = tf1.get_variable("w", (512, 2048)); v = tf1.get_variable("v", (2048, 10))
        loss = tf.reduce_mean(tf.nn.relu(x @ w) @ v); train = tf1.train.AdamOptimizer(1e-3).minimize(loss)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(100): session.run(train, {x: rng.random((128, 512))})
    """,
    "resnet": """
        net = keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=10)
        fit(net, images(64, 64), labels(64), batch_size=16, epochs=1)
    """,
    "depthwise": """
        net = keras.applications.MobileNetV2(weights=None, input_shape=(64, 64, 3), classes=10)
        fit(net, images(64, 64), labels(64), batch_size=16, epochs=1, optimizer=keras.optimizers.SGD(0.01, momentum=0.9))
    """,
    "volumes": """
        net = keras.Sequential([layers.Conv3D(16, 3, activation="relu"), layers.MaxPool3D(), layers.Flatten(), layers.Dense(2, "softmax")])
        fit(net, rng.random((48, 24, 24, 24, 1), dtype=np.float32), labels(48, 2), batch_size=8)
    """,
    "variational": """
        encode = keras.Sequential([layers.Dense(512, "relu"), layers.Dense(64)])
        decode = keras.Sequential([layers.Dense(512, "relu"), layers.Dense(784)])
        opt = keras.optimizers.Adam()
        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                mean, spread = tf.split(encode(x), 2, axis=1)
                y = decode(mean + tf.exp(spread / 2) * tf.random.normal(tf.shape(mean)))
                loss = tf.reduce_mean((x - y) ** 2) + tf.reduce_mean(mean ** 2 + tf.exp(spread) - spread)
            w = encode.trainable_variables + decode.trainable_variables
            opt.apply_gradients(zip(tape.gradient(loss, w), w))
        for _ in range(100): step(rng.random((256, 784), dtype=np.float32))
    """,
    "translation": """
        source, target = keras.Input((24,), dtype="int32"), keras.Input((20,), dtype="int32")
        read = layers.GRU(128, return_sequences=True)(layers.Embedding(1000, 64)(source))
        write = layers.GRU(128, return_sequences=True)(layers.Embedding(1000, 64)(target))
        out = layers.Dense(1000, "softmax")(layers.Concatenate()([write, layers.Attention()([write, read])]))
        fit(keras.Model([source, target], out), [words(256, 24), words(256, 20)], words(256, 20))
    """,
    "triplets": """
        net = keras.Sequential([layers.Conv2D(32, 3, 2, activation="relu"), layers.Conv2D(64, 3, 2, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(64)])
        opt = keras.optimizers.Adam()
        for _ in range(20):
            with tf.GradientTape() as tape:
                a, b, c = (net(images(32, 48), training=True) for _ in range(3))
                loss = tf.reduce_mean(tf.nn.relu(tf.norm(a - b, axis=1) - tf.norm(a - c, axis=1) + 1.0))
            opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
    """,
    "penalised": """
        net = keras.Sequential([layers.Dense(512, "tanh"), layers.Dense(512, "tanh"), layers.Dense(1)])
        opt = keras.optimizers.Adam()
        @tf.function
        def step(x):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    inner.watch(x); y = net(x)
                loss = tf.reduce_mean(y ** 2) + tf.reduce_mean((tf.norm(inner.gradient(y, x), axis=1) - 1.0) ** 2)
            opt.apply_gradients(zip(outer.gradient(loss, net.trainable_variables), net.trainable_variables))
        for _ in range(100): step(tf.random.normal((512, 128)))
    """,
}


class Trial(NamedTuple):
    """A program that is tried with *options*; ``limit_option`` sets the limit that is proposed after ``recording``."""

    name: str
    options: tuple[str, ...]
    limit_option: str
    folder: Path

    @property
    def recording(self) -> Path:
        return self.folder / f"{self.name}{''.join(self.options)}.jsonl"

    def record(self, recording: Path, options: Sequence[str]) -> str:
        """Record the program; return what it wrote to stderr if it failed, else nothing."""
        program = self.folder / f"{self.name}.py"
        program.write_text(START + textwrap.dedent(PROGRAMS[self.name]))
        run = _tfmemtop("record", "-o", str(recording), *options, "--", sys.executable, str(program))
        return run.stderr[-400:] if run.returncode else ""

    def first(self) -> str:
        """Run without a limit; return what it wrote to stderr if it failed, else nothing."""
        return self.record(self.recording, self.options)

    def again(self) -> tuple[bool, str]:
        """Run under the proposed limit. Return whether it held, and what was proposed."""
        why = json.loads(_tfmemtop("why", "--json", str(self.recording)).stdout)
        if (limit := why["limit"]) is None:
            return False, f"no limit is proposed: {why['verdict']['text']}"
        kept = () if self.limit_option in self.options else self.options
        again = self.recording.with_suffix(".again.jsonl")
        error = self.record(again, [*kept, self.limit_option, str(limit["bytes"])])
        return (
            not error,
            f"{limit['bytes'] >> 20} MiB ({limit['basis']}), peak {why['verdict']['bytes'] or 0:,} bytes {error}",
        )


def _tfmemtop(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tfmemtop", *words], capture_output=True, text=True, check=False)


def main() -> int:
    """Return 0 if all proposed limits hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.limits", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--growth", choices=["on", "off", "both"], help="on a GPU, not on the CPU's pool")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="how many run at the same time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings in FOLDER")
    words = parser.parse_args()
    option = "--memory-limit" if words.growth else "--cpu-pool"
    ways = [("--growth", growth) for growth in ("on", "off") if words.growth in (growth, "both")]
    ways = ways or [("--cpu-pool", "2GiB")]
    names = words.names or list(PROGRAMS)
    held = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = words.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        for way in ways:
            trials = [Trial(name, way, option, folder) for name in names]
            # With growth off, a program takes the whole card: one after the other.
            with ThreadPoolExecutor(1 if "off" in way else words.j) as pool:
                errors = list(pool.map(Trial.first, trials))
            with ThreadPoolExecutor(words.j) as pool:
                for trial, error, (good, text) in zip(trials, errors, pool.map(Trial.again, trials), strict=True):
                    held += good
                    print(
                        f"{trial.name:18} {' '.join(way):14} {'holds' if good else 'FAILS'}  {text} {error}", flush=True
                    )
    print(f"{held} of {len(ways) * len(names)} proposed limits hold")
    return int(held < len(ways) * len(names))


if __name__ == "__main__":
    raise SystemExit(main())
