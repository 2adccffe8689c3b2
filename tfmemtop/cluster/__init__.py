"""What a Prometheus server has of many machines: PromQL answers as an overview of all GPUs, and as events of one.

The state of a session is that of one host: its GPUs have the driver's indices, its processes have pids, it has one
newest run. An overview of a thousand hosts has none of these, and a history of every GPU would take gigabytes. So the
overview is a state of its own, of the newest figures only (:mod:`tfmemtop.cluster.overview`). The one GPU that a user
opens is read as events (:mod:`tfmemtop.cluster.one_gpu`), folded into the usual state, and drawn by the usual panels.
"""
