"""`reasonctl rules`: the catalogue as text, JSON and Markdown; ids and slugs are fixed for ever."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from reasonctl.checks.rule import Rule, all_rules, rules_digest
from reasonctl.cli import main
from reasonctl.cli.rules import FAMILIES, _first, family_pages

RULES = list(all_rules().values())


def output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["reasonctl", "rules", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_text_lists_each_rule_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = output(monkeypatch, capsys)
    assert code == 0
    flat = re.sub(" +", " ", out)
    for rule in RULES:
        word = {"info": "note"}.get(rule.severity, rule.severity)
        assert flat.count(f" {rule.id} {word} {rule.slug} ") == 1
    assert out.splitlines()[-1] == f"{len(RULES)} rules. `reasonctl explain RULE` says more about each."


def test_json_holds_everything(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = output(monkeypatch, capsys, "--format", "json")
    data: dict[str, Any] = json.loads(out)
    assert code == 0
    assert data["rules_digest"] == rules_digest()
    assert [(rule["id"], rule["slug"], rule["severity"]) for rule in data["rules"]] == [
        (rule.id, rule.slug, rule.severity) for rule in RULES
    ]
    lost = next(rule for rule in data["rules"] if rule["id"] == "INT904")
    assert lost["what"].startswith("One result could not be made: the code that should make it crashed")
    assert lost["example"].splitlines()[1] == "  at  trace t7, parser my_parser"
    assert lost["reproduced"] == {"command": None, "tests": "int904 or result_lost"}
    old = next(rule for rule in data["rules"] if rule["id"] == "SRV208")
    assert old["facts"][0] == {
        "kind": "fact",
        "name": "response-reasoning_content",
        "since": "0.7.1",
        "until": "0.16",
        "source": old["facts"][0]["source"],
        "text": "responses carry the reasoning under reasoning_content",
    }
    assert old["reproduced"]["command"].startswith("reasonctl audit ")


def test_markdown_says_everything(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = output(monkeypatch, capsys, "--format", "markdown")
    lines = out.splitlines()
    assert code == 0
    assert f"{len(RULES)} rules, digest `{rules_digest()}`." in lines
    assert "## INT: the tool's own" in lines
    assert any(
        line.startswith("| [INT903](#int903) | unreadable-input | warning | A part of the input") for line in lines
    )
    rows = [line for line in lines if re.match(r"\| \[[A-Z]{3}\d{3}\]", line)]
    assert len(rows) == len(RULES)
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in rows)
    flat = " ".join(out.replace("&lt;", "<").split())
    for rule in RULES:
        assert f'<a id="{rule.id.lower()}"></a>' in lines
        assert f"### {rule.id} {rule.slug}" in lines
        for text in (rule.why, rule.instead, rule.versions, *rule.sources):
            assert " ".join(text.split()) in flat


def test_a_family_has_a_page_and_the_index_links_to_its_rules() -> None:
    pages = family_pages()
    assert list(pages) == ["README.md", *(f"{family.lower()}.md" for family in FAMILIES if _members(family))]
    for rule in RULES:
        name = f"{rule.id[:3].lower()}.md"
        assert f"| [{rule.id}]({name}#{rule.id.lower()}) | {rule.slug} | {rule.severity} | " in pages["README.md"]
        assert f'<a id="{rule.id.lower()}"></a>' in pages[name].splitlines()
    assert "| before 0.16 |" not in pages["srv.md"]
    assert "| 0.7.1 to before 0.16 | responses carry the reasoning under reasoning_content |" in pages["srv.md"]


def _members(family: str) -> list[type[Rule]]:
    return [rule for rule in RULES if rule.id.startswith(family)]


def test_unknown_format(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = output(monkeypatch, capsys, "--format", "html")
    assert (code, err) == (2, "reasonctl: --format: 'html' is none of text, json, markdown\n")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_each_rule_is_whole(rule: type[Rule]) -> None:
    assert re.fullmatch(r"[A-Z]{3}\d{3}", rule.id)
    assert rule.id[:3] in FAMILIES
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.slug)
    assert rule.severity in ("error", "warning", "info")
    for text in (rule.what, rule.why, rule.example, rule.instead, rule.versions):
        assert text.strip()


def test_first_sentence() -> None:
    class Short(Rule):
        what = "Fires when vLLM 0.33.0 says no. Then it stops."

    class Long(Rule):
        what = """A part is missing: a line,
            or a file"""

    assert _first(Short) == "Fires when vLLM 0.33.0 says no."
    assert _first(Long) == "A part is missing: a line, or a file"
