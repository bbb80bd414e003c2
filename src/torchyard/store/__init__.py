"""Memory: tables and one module a noun, domain objects in and out. Knows nothing of what they mean."""
