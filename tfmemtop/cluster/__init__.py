"""Shows many machines by the figures that a Prometheus server has of them: a table of all GPUs.

The state of a session is that of one host: its GPUs have the driver's indices, its processes have pids, and it has one
newest run. The table of a thousand hosts has none of these, and a history of every GPU would take gigabytes. So its
rows are made from the newest figures only (:mod:`tfmemtop.cluster.answers`).
"""
