"""Shows many machines by the figures that a Prometheus server has of them: an overview of all GPUs, and events of one.

The state of a session is that of one host: its GPUs have the driver's indices, its processes have pids, and it has one
newest run. An overview of a thousand hosts has none of these, and a history of every GPU would take gigabytes. So the
overview is a state of its own, which contains only the newest figures (:mod:`tfmemtop.cluster.overview`). The one GPU
that a user opens is read as events (:mod:`tfmemtop.cluster.one_gpu`). These are folded into the usual state, and the
usual panels draw it.
"""
