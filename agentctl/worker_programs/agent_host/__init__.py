"""The host of an agent: the worker's own program, which runs the agent program and does what its driver says."""
