"""What a node and the head give to each other, as files in the folder of a launch.

Doors: `file_mirror`, `from_head`, `heartbeat`, `launch_record`, `node_relay`, `seal`, `to_node`, `written_state`.
"""
