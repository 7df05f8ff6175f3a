"""The state machines, each as one table: what can happen in each state, and which state follows.

Doors: `attempt_state`, `guard_state`, `launch_state`, `offer_state`.
"""
