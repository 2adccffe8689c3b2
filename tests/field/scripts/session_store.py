"""A chat service that keeps the keys and values of each user's conversation, of all users or of the last few."""

import sys
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

LAYERS, LENGTH, HEADS, DIM = 4, 320, 8, 64


@dataclass
class Conversation:
    user: str
    past: list[tuple[tf.Tensor, tf.Tensor]]


class ConversationStore:
    def __init__(self, last: int) -> None:
        self._by_user: dict[str, Conversation] = {}
        self._last = last

    def add(self, conversation: Conversation) -> None:
        self._by_user[conversation.user] = conversation
        while len(self._by_user) > self._last:
            del self._by_user[next(iter(self._by_user))]


def answered(user: str) -> Conversation:
    prompt = tf.random.normal([1, LENGTH, HEADS * DIM])
    weights = [tf.random.normal([HEADS * DIM, HEADS * DIM]) for _ in range(2)]
    past = [tuple(tf.reshape(prompt @ w, [1, LENGTH, HEADS, DIM]) for w in weights) for _ in range(LAYERS)]
    return Conversation(user, past)


store = ConversationStore(int(sys.argv[1]))
rng = np.random.default_rng(0)
for number in range(60):
    store.add(answered(f"user-{number}-{rng.random():.4f}"))
    print("answered", number, flush=True)
