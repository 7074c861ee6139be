"""What was recorded: the trace model and one reader per format."""
