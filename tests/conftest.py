"""What holds for every test."""

import signal

# A shell that runs the suite in the background has it ignore Ctrl-C, and all that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
