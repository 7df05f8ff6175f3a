"""Engines that place workers on nodes, behind one small interface: they place, signal and clean up, no more.

Every launch runs the same program, which guards the worker on its node (`worker_programs/on_node/post.py`). A runner
of another package is found by its entry point in the group `agentctl.runners`.
"""
