"""The rules: one file per family, one class per rule; a rule turns facts into findings."""
