"""Submit and look after distributed trainings. The same as `training pytorch`."""

from torchyard.cli.commands.training import pytorch as command

__all__ = ["command"]
