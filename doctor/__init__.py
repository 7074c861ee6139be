"""What is on this machine: libraries, extras, vLLMs, a GPU; and whether reasonctl itself works here."""
