"""A transformer of four layers on noise: ``python transformer.py SECONDS``. 32 texts of 256 tokens, 8000 words."""

import sys
import time

import tensorflow as tf

BATCH, LENGTH, WORDS, WIDTH, HEADS, LAYERS = 32, 256, 8000, 512, 8, 4
ends = time.monotonic() + float(sys.argv[1])
layers = tf.keras.layers
tokens = tf.keras.Input([LENGTH], dtype="int32")
passed = layers.Embedding(WORDS, WIDTH, name="words")(tokens)
for number in range(LAYERS):
    attended = layers.MultiHeadAttention(HEADS, WIDTH // HEADS, name=f"attention_{number}")(passed, passed)
    passed = layers.LayerNormalization(name=f"after_attention_{number}")(passed + attended)
    wide = layers.Dense(4 * WIDTH, activation="gelu", name=f"up_{number}")(passed)
    passed = layers.LayerNormalization(name=f"after_{number}")(
        passed + layers.Dense(WIDTH, name=f"down_{number}")(wide)
    )
model = tf.keras.Model(tokens, layers.Dense(WORDS, name="logits")(passed))
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adamw", loss=loss, jit_compile=False)
texts = tf.random.uniform([BATCH, LENGTH], 0, WORDS, tf.int32)
data = tf.data.Dataset.from_tensors((texts, texts)).repeat()


class Until(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Ends the training in time."""

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        """Stop if the time is up."""
        self.model.stop_training = time.monotonic() > ends


model.fit(data, steps_per_epoch=50, epochs=100000, verbose=0, callbacks=[Until()])
