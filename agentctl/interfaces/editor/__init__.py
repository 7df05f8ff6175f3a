"""agentctl as an agent of the Agent Client Protocol, for editors. The library comes with the extra `acp`."""
