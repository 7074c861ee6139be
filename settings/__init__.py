"""`reasonctl.toml`: what a project checks, by which server's rules, and what it knowingly lives with."""
