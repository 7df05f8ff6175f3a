"""Who may start, who lives, how it ends: slots, queue, judging, sweeping. Standard library only, for the shim."""
