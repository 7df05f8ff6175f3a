"""Our own programs that run as a worker: the host of an agent, the post on a node, the agent of a plain model."""
