"""What an agent is and may do: its definition, its permissions, its powers and tools.

Doors: `agentspec`, `driver_names`, `granted_powers`, `own_tools`, `permissions`, `shell_line`, `telling_argument`.
"""
