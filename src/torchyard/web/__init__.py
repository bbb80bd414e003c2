"""Pages for people: server-rendered, own style and script. Knows nothing of the API's routes but their paths."""
