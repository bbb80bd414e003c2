"""How it looks: from a submission to what an engine is told. Pure; knows no engine, file or clock."""
