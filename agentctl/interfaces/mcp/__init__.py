"""The tools over MCP. Only this package uses the `mcp` library, which comes with the extra `mcp`."""
