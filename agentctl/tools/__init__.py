"""The tools by which an agent, or any other program, gives work to sub-agents, asks the user and reports."""
