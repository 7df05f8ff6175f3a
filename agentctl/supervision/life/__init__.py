"""Whether a worker lives, and which processes are its own: by proof.

Doors: `judging`, `process_tree`, `belonging`, `strangers`.
"""
