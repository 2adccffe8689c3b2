# after tensorflow#38367, ray#13680: two spawned workers, one of which needs much more
import multiprocessing
import time


def work(k):
    import tensorflow as tf

    keep = [tf.random.normal([1000, 1000]) for _ in range(5 + 20 * k)]
    for _ in range(60):
        tf.reduce_sum(keep[0] @ keep[1])
        time.sleep(0.1)
    print("worker", k, "done", flush=True)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    workers = [multiprocessing.Process(target=work, args=(k,)) for k in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
