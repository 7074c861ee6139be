"""A real server to test against: the lab models that need no weights, and starting, probing and stopping vLLM."""
