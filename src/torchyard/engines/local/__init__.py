"""This machine as a cluster: a replica is a supervised process tree in a folder of its own."""
