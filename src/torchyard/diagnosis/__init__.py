"""Why? Judgements on what engines saw and logs say. Pure; knows nothing of engines, the store or the clock."""
