"""The command line: main, then one command a file in commands/. Talks to the server through the client only."""
