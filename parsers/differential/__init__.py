"""The differential suite: every parser model against the real vLLM's parser, on generated outputs and prompts."""
