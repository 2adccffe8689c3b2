"""Small programs of each kind, on the CPU: ``python programs.py NAME``. They train for some seconds, with pauses.

``tests/tools/programs.py`` records them.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

SECONDS = 12.0
PAUSE_S = 0.05
FLOAT = tf.float32


def steps() -> Iterator[None]:
    """Yield until the program has run for long enough, with a pause before each step."""
    began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        time.sleep(PAUSE_S)
        yield


class Pauses(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Pauses before each step of ``fit``, and ends it in time."""

    def __init__(self) -> None:
        super().__init__()
        self._steps = steps()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Pause."""
        if next(self._steps, self) is self:
            self.model.stop_training = True


def repeated(inputs: tuple[int, ...], targets: tuple[int, ...]) -> Any:
    """Return a data set of one batch of floats, again and again."""
    return tf.data.Dataset.from_tensors((tf.random.uniform(inputs), tf.zeros(targets))).repeat()


def fit(model: Any, data: Any, **settings: Any) -> None:
    """Train *model* on *data*."""
    model.compile(**settings)
    model.fit(data, steps_per_epoch=20, epochs=1000, verbose=0, callbacks=[Pauses()])


def dense() -> None:
    """Four layers of 1024 × 1024 on a batch of 256."""
    layers = [tf.keras.layers.Dense(1024, activation="relu", name=f"layer{number}") for number in range(4)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(10, name="head")])
    fit(model, repeated((256, 1024), (256, 10)), optimizer="adam", loss="mse")


def sequential() -> None:
    """A CNN, with names of its own and with Keras's."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Conv2D(16, 3, activation="relu", name="c1"),
            layers.BatchNormalization(),
            layers.Conv2D(16, 3, activation="relu", name="c2"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(32, 3),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dense(64, activation="relu", name="d1"),
            layers.Dropout(0.5),
            layers.Dense(64, activation="tanh"),
            layers.Dense(32, activation="relu"),
            layers.Dense(10),
        ]
    )
    fit(model, repeated((32, 32, 32, 3), (32, 10)), optimizer="adam", loss="mse")


def functional() -> None:
    """Three blocks with a sum and a normalisation each."""
    layers = tf.keras.layers
    inputs = tf.keras.Input([64])
    passed = layers.Dense(128, activation="gelu")(inputs)
    for _ in range(3):
        block = layers.Dense(128)(layers.Dense(256, activation="relu")(passed))
        passed = layers.LayerNormalization()(layers.Add()([passed, block]))
    model = tf.keras.Model(inputs, layers.Dense(10, name="head", activation="softmax")(passed))
    data = tf.data.Dataset.from_tensors((tf.random.uniform([64, 64]), tf.zeros([64], tf.int32))).repeat()
    fit(model, data, optimizer="rmsprop", loss="sparse_categorical_crossentropy", metrics=["accuracy"])


class Block(tf.keras.layers.Layer):  # type: ignore[misc]
    """Two convolutions and a normalisation."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.conv1 = tf.keras.layers.Conv2D(16, 3, padding="same", name="conv1")
        self.conv2 = tf.keras.layers.Conv2D(16, 3, padding="same", name="conv2")
        self.norm = tf.keras.layers.BatchNormalization()

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Return the block's output."""
        return tf.nn.relu(self.norm(self.conv2(self.conv1(inputs)), training=training))


class Sub(tf.keras.Model):  # type: ignore[misc]
    """A model whose layers have layers."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [Block(f"block{number}") for number in range(3)]
        self.pooled = tf.keras.layers.GlobalAveragePooling2D()
        self.out = tf.keras.layers.Dense(10)

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Return the model's output."""
        for block in self.blocks:
            inputs = block(inputs, training=training)
        return self.out(self.pooled(inputs))


def subclassed() -> None:
    """A model that is a class of the script's own."""
    optimizer = tf.keras.optimizers.SGD(momentum=0.9)
    fit(Sub(), repeated((16, 32, 32, 3), (16, 10)), optimizer=optimizer, loss="mse")


def transformer() -> None:
    """Two layers of attention, with a loop of the script's own."""
    layers = tf.keras.layers
    tokens = tf.keras.Input([32], dtype="int32")
    passed = layers.Embedding(500, 64, name="tok")(tokens)
    for number in range(2):
        attended = layers.MultiHeadAttention(4, 16, name=f"attn{number}")(passed, passed)
        passed = layers.LayerNormalization()(passed + attended)
        wide = layers.Dense(256, activation="gelu", name=f"mlp{number}up")(passed)
        passed = passed + layers.Dense(64, name=f"mlp{number}down")(wide)
    model = tf.keras.Model(tokens, layers.Dense(500, name="head")(passed))
    optimizer = tf.keras.optimizers.AdamW()
    weights = model.trainable_variables
    optimizer.build(weights)
    texts = tf.random.uniform([16, 32], 0, 500, tf.int32)

    @tf.function  # type: ignore[untyped-decorator]
    def train_step(texts: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.keras.losses.sparse_categorical_crossentropy(texts, model(texts), from_logits=True)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

    for _ in steps():
        train_step(texts)


def plain() -> None:
    """TensorFlow without Keras."""
    first = tf.Variable(tf.random.normal([256, 512]), name="w1")
    second = tf.Variable(tf.random.normal([512, 10]), name="w2")

    @tf.function  # type: ignore[untyped-decorator]
    def train_step(inputs: Any) -> None:
        with tf.GradientTape() as tape:
            with tf.name_scope("encoder"):
                wide = tf.nn.relu(tf.linalg.matmul(inputs, first, name="matmul"))
            with tf.name_scope("decoder"):
                loss = tf.reduce_mean(tf.square(tf.linalg.matmul(wide, second, name="matmul")))
        for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
            variable.assign_sub(0.01 * gradient)

    inputs = tf.random.normal([128, 256])
    for _ in steps():
        train_step(inputs)


def eager() -> None:
    """A loop that runs each operation by itself."""
    first = tf.Variable(tf.random.normal([256, 512]), name="w1")
    second = tf.Variable(tf.random.normal([512, 10]), name="w2")
    layers = [tf.keras.layers.Dense(64, activation="relu", name="d1"), tf.keras.layers.Dense(10, name="d2")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.Adam()
    inputs = tf.random.normal([128, 256])
    for _ in steps():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs) - tf.nn.relu(inputs @ first) @ second))
        variables = [first, second, *model.trainable_variables]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def mirrored() -> None:
    """Three layers on two devices."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        widths = {"up": 1024, "mid": 512, "down": 10}
        layers = [tf.keras.layers.Dense(width, name=name) for name, width in widths.items()]
        model = tf.keras.Sequential([tf.keras.Input([256]), *layers])
        fit(model, repeated((64, 256), (64, 10)), optimizer="adam", loss="mse")


def v1() -> None:
    """A session of TensorFlow 1."""
    old = tf.compat.v1
    old.disable_eager_execution()
    passed = old.placeholder(FLOAT, [128, 256])
    feed = passed
    for number, (width, scope) in enumerate([(512, "encoder0"), (512, "encoder1"), (512, "encoder2"), (10, "head")]):
        with old.variable_scope(scope):
            weights = old.get_variable("w", [passed.shape[1], width])
            bias = old.get_variable("b", [width], initializer=old.zeros_initializer())
            passed = tf.matmul(passed, weights) + bias
            passed = tf.nn.relu(passed) if number < 3 else passed
    labels = tf.one_hot(tf.zeros([128], tf.int32), 10)
    loss = tf.reduce_mean(old.nn.softmax_cross_entropy_with_logits_v2(labels, passed))
    train = old.train.AdamOptimizer().minimize(loss)
    with old.Session() as session:
        session.run(old.global_variables_initializer())
        for _ in steps():
            session.run(train, {feed: [[1.0] * 256] * 128})


def xla() -> None:
    """Two layers, compiled."""
    widths = {"up": 256, "down": 10}
    model = tf.keras.Sequential([tf.keras.layers.Dense(width, name=name) for name, width in widths.items()])
    fit(model, repeated((64, 64), (64, 10)), optimizer="adam", loss="mse", jit_compile=True)


PROGRAMS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (dense, eager, functional, mirrored, plain, sequential, subclassed, transformer, v1, xla)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
