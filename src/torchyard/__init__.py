"""Torchyard runs distributed PyTorch training: described once, run on this machine, on Kubernetes or on Ray."""

__version__ = "0.1.0"
