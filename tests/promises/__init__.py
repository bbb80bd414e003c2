"""Each promise of the local cluster, proved by breaking things: a real server, real supervisors, real processes."""
