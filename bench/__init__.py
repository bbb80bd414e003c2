"""Figures of torchyard beside the same work done without it, as ratios within one run: `python -m bench [NAME...]`."""
