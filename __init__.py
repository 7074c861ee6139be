"""reasonctl: do a reasoning model's chat template, vLLM's reasoning parser and the thinking budget agree?"""

__version__ = "0.1.0"

__all__ = ["__version__"]
