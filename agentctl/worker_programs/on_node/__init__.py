"""Workers on nodes: the worker's stand-in at the head, which follows it, and the post that guards it on its node.

At the head, the stand-in is the worker's own first process: it has the slot, asks the questions, and ends as the worker
ends. On the node lies a small task with this one worker, guarded by a shim as anywhere else. The two sides meet in the
folder of the launch (`LaunchDir`), where each file has one writer.

Words:

- `post`: what an engine starts on a node: it claims the launch and has the worker guarded there
- `claim`: the file by which a launch is taken, once: by a node, or by the head so that no node does
- `mirror`: to copy what a worker writes on its node
- `relay`: to carry over its events and its questions
- `called command`: a command of a worker on a node, which is carried out at the head
- `verdict`: how an attempt on a node has ended, as its stand-in found it
- `unfollowed`: its shim at the head is gone, and no other one has taken over yet
- `seal`: what proves to a node that an answer comes from the head
"""
