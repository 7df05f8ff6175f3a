"""The program that a worker of an agent is: it runs the agent program and does what its driver says."""
