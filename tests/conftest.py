"""What holds for every test."""

import signal

from hypothesis import settings

# A shell that runs the suite in the background has it ignore Ctrl-C, and all that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("any-machine", deadline=None)  # a loaded machine is no failure
settings.load_profile("any-machine")
