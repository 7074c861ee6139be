"""INT: what the tool says about its own work, so that no part that was not read and no lost result is silent."""

from __future__ import annotations

from .rule import Rule, register


@register
class StaleSuppression(Rule):
    id = "INT901"
    slug = "stale-suppression"
    severity = "warning"
    what = """An `[[ignore]]` of the settings file, or an entry of the baseline, matched no finding of a whole `gate`
        run. A rule that is switched off by `--select` or `--ignore` cannot be missed, and neither can what a table that
        did not run would have found: then nothing is said."""
    why = """What was lived with is mended, or goes by another name. Left in place, the suppression would hide the
        same defect when it comes back, and nobody would know that it had been away."""
    example = """
        reasonctl.toml:9:3: warning INT901 stale-suppression: the ignore of TPL002 matches no finding
        """
    instead = "Remove the ignore; write the baseline anew with `reasonctl baseline write FILE`."
    versions = "does not depend on the server"


@register
class ExpectationBroken(Rule):
    id = "INT902"
    slug = "expectation-broken"
    severity = "error"
    what = """An `[[audit]]` table says with `expect` which parser fits the model and which state its prompts leave it
        in, and the model, template or server at hand does otherwise."""
    why = """Somebody built on that: a client that switches thinking off, a budget, a grammar. A new revision of a
        template changes it without any error, and no other rule knows what was relied on."""
    example = """
        expect = {parser = "qwen3", states = {"{}" = "open", '{"enable_thinking": false}' = "closed"}}
        """
    instead = """Look at the change: go back to the revision that was relied on, or change what is built on it, and then
        write down the new state."""
    versions = "does not depend on the server"


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
