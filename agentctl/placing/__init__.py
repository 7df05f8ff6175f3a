"""Workers on nodes: the worker's stand-in at the head, which follows it, and the post that guards it on its node.

At the head, the stand-in is the worker's own first process: it has the slot, asks the questions, and ends as the worker
ends. On the node lies a small task with this one worker, guarded by a shim as anywhere else. The two sides meet in the
folder of the launch (`LaunchDir`), where each file has one writer.
"""
