"""The tools over MCP: the only package that knows the `mcp` library, which comes with the extra `agentctl[mcp]`."""
