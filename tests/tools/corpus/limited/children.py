"""Two TensorFlow processes, spawned and not forked, beside the one that starts them."""

import multiprocessing


def work(mib: int) -> None:
    import tensorflow as tf

    kept = [tf.zeros([1 << 18]) for _ in range(mib)]
    print(len(kept), "MiB in a child")


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    for mib in (40, 170):
        child = context.Process(target=work, args=[mib])
        child.start()
        child.join()
        assert child.exitcode == 0
    print("done")
