# one document of 2600 tokens among those of 400 at most: attention asks for 40 times as much
import sys

import keras
import numpy as np
import tensorflow as tf

VOCAB, DIM, BATCH = 5000, 64, 8


def corpus(n):
    rng = np.random.default_rng(11)
    lengths = np.clip(rng.lognormal(5.0, 0.3, n).astype(int), 40, 400)
    lengths[260] = int(sys.argv[1])  # an annual report among the letters
    for length in lengths:
        yield rng.integers(1, VOCAB, length), rng.integers(0, 2)


def batches(docs):
    texts, labels = [], []
    for tokens, label in docs:
        texts.append(tokens)
        labels.append(label)
        if len(texts) == BATCH:
            width = max(map(len, texts))
            padded = np.zeros((BATCH, width), "int32")
            for row, t in enumerate(texts):
                padded[row, : len(t)] = t
            yield tf.constant(padded), tf.constant(labels, tf.float32)
            texts, labels = [], []


class Reader(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = keras.layers.Embedding(VOCAB, DIM)
        self.attend = keras.layers.MultiHeadAttention(4, 16)
        self.head = keras.layers.Dense(1)

    def call(self, tokens):
        h = self.embed(tokens)
        h = h + self.attend(h, h)
        return self.head(tf.reduce_mean(h, 1))[:, 0]


def main():
    model, opt = Reader(), keras.optimizers.Adam(1e-3)
    bce = keras.losses.BinaryCrossentropy(from_logits=True)
    for step, (tokens, labels) in enumerate(batches(corpus(400))):
        with tf.GradientTape() as tape:
            loss = bce(labels, model(tokens))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        if step % 5 == 0:
            print(f"step {step} loss {float(loss):.4f}", flush=True)


if __name__ == "__main__":
    main()
