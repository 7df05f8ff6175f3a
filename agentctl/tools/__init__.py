"""The tools by which an agent, or a program that is none, gives work to sub-agents: one definition of each."""
