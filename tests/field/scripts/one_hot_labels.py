# a language model whose logits, and one-hot labels, are 312 MiB each with a batch of 64
import sys

import keras
import numpy as np
import tensorflow as tf
from keras import layers

VOCAB, SEQ, BATCH = 20_000, 64, int(sys.argv[1])


class LanguageModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = layers.Embedding(VOCAB, 32)
        self.rnn = layers.GRU(32, return_sequences=True)
        self.project = layers.Dense(VOCAB)

    def call(self, tokens):
        return self.project(self.rnn(self.embed(tokens)))


def loss_fn(targets, logits):
    labels = tf.one_hot(targets, VOCAB)
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels, logits))


def main():
    model, opt = LanguageModel(), keras.optimizers.Adam()
    rng = np.random.default_rng(0)
    for step in range(3):
        text = tf.constant(rng.integers(0, VOCAB, (BATCH, SEQ + 1)))
        with tf.GradientTape() as tape:
            loss = loss_fn(text[:, 1:], model(text[:, :-1]))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        print(step, float(loss), flush=True)


if __name__ == "__main__":
    main()
