"""What stands beside the ranks: supervisor > keeper > command. Standard library only; it is copied into each attempt
folder and run from there as package `agent`, so it knows nothing of the rest of torchyard."""
