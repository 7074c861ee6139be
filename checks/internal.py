"""INT: what the tool says about its own work, so that no part that was not read and no lost result is silent."""

from __future__ import annotations

from .rule import Rule, register


@register
class UnreadableInput(Rule):
    id = "INT903"
    slug = "unreadable-input"
    severity = "warning"
    what = """A part of the input could not be read: a broken line of a trace file, a stream that breaks off, or a file
        of a folder. Its place is named; everything else is read and judged."""
    why = """A report over 999 of 1000 traces is worth having, but only if it says so. A capture that was cut off, a
        proxy's error page in the middle of a stream or two lines glued together would otherwise just be missing."""
    example = """
        capture.jsonl:17:1: warning INT903 unreadable-input: not JSON: Unterminated string at column 212
        """
    instead = "Mend or remove the part that is named. `--fail-on warning` turns a broken capture into a failing job."
    versions = "does not depend on the server"


@register
class ResultLost(Rule):
    id = "INT904"
    slug = "result-lost"
    severity = "error"
    what = "One result could not be made: the code that should make it crashed or ran out of time. The others stand."
    why = """What was lost may be the one case that fails. A run that lost a result must not look like one that passed,
        and one crash must not cost the results of a whole run either."""
    example = """
        error INT904 result-lost: the parser gave no answer within 60 s
          at  trace t7, parser my_parser
        """
    instead = """Run that one case alone with `--debug` to see where it stops. A parser that hangs or exits takes a
        served request down in the same way."""
    versions = "does not depend on the server"
