"""The program that runs in the other interpreter: standard library and vLLM only, Python 3.10 and later."""
