"""May it run? Findings on a submission, and who starts next. Pure; knows no engine, file or clock."""
