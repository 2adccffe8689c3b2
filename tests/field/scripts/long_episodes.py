"""Learns a game by one gradient for each episode. The better the policy is, the longer is an episode."""

import sys

import tensorflow as tf


class Policy(tf.keras.Model):
    def __init__(self, actions):
        super().__init__()
        self.norm = tf.keras.layers.LayerNormalization()
        self.hidden = tf.keras.layers.Dense(32, activation="tanh")
        self.logits = tf.keras.layers.Dense(actions)

    def call(self, frames):
        return self.logits(self.hidden(self.norm(frames)))


class Agent:
    def __init__(self):
        self.policy = Policy(3)
        self.optimizer = tf.keras.optimizers.Adam(1e-4)

    def learn(self, steps):
        log_probs = []
        with tf.GradientTape() as tape:
            for _ in range(steps):
                logits = self.policy(tf.random.normal([32, 4096]))
                actions = tf.random.categorical(logits, 1)[:, 0]
                log_probs.append(-tf.nn.sparse_softmax_cross_entropy_with_logits(actions, logits))
            loss = -tf.reduce_mean(tf.stack(log_probs))
        variables = self.policy.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return float(loss)


agent, longest = Agent(), int(sys.argv[1])
for episode in range(20):
    length = min(longest, int(12 * 1.2**episode))
    print(f"episode {episode}: {length} steps, loss {agent.learn(length):.4f}", flush=True)
