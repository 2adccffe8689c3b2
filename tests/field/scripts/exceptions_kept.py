# a service keeps the errors of its requests for a report; each error keeps the frames of its traceback
import sys

import tensorflow as tf


def answer(request):
    features = tf.nn.relu(tf.random.normal([512, 1024]))  # 2 MiB
    if request % 2:
        raise ValueError(f"request {request} has no label")
    return float(tf.reduce_mean(features))


errors = []
for request in range(400):
    try:
        answer(request)
    except ValueError as error:
        errors.append(error if sys.argv[1] == "errors" else str(error))
    if request % 50 == 0:
        print("request", request, len(errors), flush=True)
