"""The parser author's kit: what a plugin's source says, and a plugin to start from."""
