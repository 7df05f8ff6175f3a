"""The shim: the small process that guards a worker, outlives the command that started it, and records the exit."""
