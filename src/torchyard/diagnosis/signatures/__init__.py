"""Known failures, one a file: NAME and match(lines, fault, evidence). Other packages add theirs by entry points."""
