"""The server of `agentctl serve`: what the commands do, over HTTP, and a page on top of it. Needs the extra `serve`."""
