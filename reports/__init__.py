"""One file per output format; `formats.py` tells a command which there are."""
