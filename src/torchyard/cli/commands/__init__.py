"""One command a file: its name is the file's, its help the first sentence of the file, `command` what click runs."""
