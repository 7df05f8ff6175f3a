"""Our own programs that run as a worker or for one: an agent's host, what runs on a node, a plain model's agent."""
