"""The world outside: one engine for each kind of cluster. Knows plans and facts, nothing of workloads' lives."""
