"""One rule a file: `id`, `severity` and `check(view)`, which yields a remark for each thing it finds."""
