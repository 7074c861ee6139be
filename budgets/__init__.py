"""What a request is granted: dialects, selection, cutoff."""
