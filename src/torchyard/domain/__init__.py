"""Words: the values that every floor speaks in. Knows nothing of storage, HTTP, processes or the clock."""
