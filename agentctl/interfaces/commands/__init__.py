"""What can be asked of agentctl: what a command is, and each command with what it shows."""
