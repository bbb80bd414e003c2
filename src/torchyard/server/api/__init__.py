"""One resource a file. Routers are thin: parse, ask control, shape."""
