"""What the engines promise, on the real thing."""
