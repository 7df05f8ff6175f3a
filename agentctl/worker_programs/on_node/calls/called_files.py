"""The files through which a worker on a node has a command carried out at the head, and which commands go there."""

from __future__ import annotations

from agentctl.adapters.paths import FilePath

#: Names the folder of the launch to the commands of a worker on a node.
LAUNCH_VARIABLE = "AGENTCTL_LAUNCH"
#: What a worker says about itself is said on its node, where its shim and its files are.
_ON_NODE = frozenset({("interact", "ask"), ("report",), ("inbox",), ("hook",)})
#: Variables of a job: they mean nothing at the head.
OF_JOBS = (
    "SLURM_",
    "SLURMD_",
    "SBATCH_",
    "AGENTCTL_",
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ROCR_VISIBLE_DEVICES",
)

#: A sign of life of whoever waits for the command, and how long without one until it is taken to be gone.
ALIVE_EVERY_S, GONE_AFTER_S = 5.0, 60.0


class CallFiles:
    """The files of one call: written on the node, and as its reply at the head."""

    def __init__(self, calls: FilePath, replies: FilePath, name: str) -> None:
        self.name, self.folder, self.reply = name, calls / name, replies / name
        self.order = self.folder / "call.json"
        self.input = self.folder / "stdin"
        #: Exists once the input is whole.
        self.input_end = self.folder / "stdin.end"
        #: The number of a signal that the command is to get.
        self.signal = self.folder / "signal"
        self.alive = self.folder / "alive"
        self.outputs = self.reply / "stdout", self.reply / "stderr"
        self.ended = self.reply / "ended.json"


def is_for_head(argv: list[str]) -> bool:
    """Return whether a command of a worker on a node is carried out at the head."""
    words = tuple(word for word in argv if not word.startswith("-"))
    is_asked_here = any(words[: len(own)] == own for own in _ON_NODE)
    return bool(words) and not is_asked_here
