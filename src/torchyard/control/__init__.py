"""Hands: the only place that joins store, policy, render, diagnosis and engines."""
