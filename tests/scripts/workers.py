"""A Keras training over several workers in lockstep (``MultiWorkerMirroredStrategy``), one per rank of a Slurm step.

From step 50 on, rank 1 keeps 64 MiB more.
"""

import json
import os
import time

RANK, RANKS, PORT = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]), int(os.environ["PORT"])
os.environ["TF_CONFIG"] = json.dumps(
    {
        "cluster": {"worker": [f"127.0.0.1:{PORT + number}" for number in range(RANKS)]},
        "task": {"type": "worker", "index": RANK},
    }
)

import tensorflow as tf  # noqa: E402

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = tf.Variable(tf.random.normal((256, 256)))


@tf.function  # type: ignore[untyped-decorator]
def step() -> tf.Tensor:
    def one() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.random.normal((64, 256)) @ weights))
        gradient = tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, weights))
        weights.assign_sub(0.01 * gradient)
        return loss

    return strategy.reduce("mean", strategy.run(one), axis=None)


kept = []
for number in range(120):
    step()
    if RANK == 1 and number == 50:
        kept.append(tf.zeros((16, 1024, 1024)))
    time.sleep(0.05)
