"""`reasonctl explain`: every rule has a page, by id and by slug, plain where it is piped."""

from __future__ import annotations

import inspect
import sys

import pytest

from reasonctl.checks.rule import Rule, all_rules
from reasonctl.cli import main
from reasonctl.cli.explain import paragraphs
from reasonctl.reports import formats
from reasonctl.versions import every

RULES = list(all_rules().values())


def explain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["reasonctl", "explain", name])
    with pytest.raises(SystemExit) as stop:
        main()
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_page_says_everything(
    rule: type[Rule], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = explain(monkeypatch, capsys, rule.id)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith(f"{rule.id} {rule.slug}   ")
    titles = ["What it does", "Why it matters", "Example", "Do instead", "Affected versions"]
    titles += [*(["Sources"] if rule.sources else []), "How it was reproduced"]
    assert [line for line in lines if line in titles] == titles
    flat = " ".join(out.split())
    for text in (rule.what, rule.why, rule.instead, rule.versions, *rule.sources):
        assert " ".join(text.split()) in flat
    for line in inspect.cleandoc(rule.example).splitlines():
        assert " ".join(line.split()) in flat
    assert max(map(len, lines)) <= 96
    assert "\x1b" not in out


def test_the_releases_come_from_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = explain(monkeypatch, capsys, "SRV208")
    versions = out[out.index("Affected versions") : out.index("Sources")].splitlines()
    assert versions[2] == "    0.7.1 to before 0.16  responses carry the reasoning under reasoning_content"
    assert versions[4] == "    0.11.1 and later      responses carry the reasoning under reasoning"
    _, out, _ = explain(monkeypatch, capsys, "SRV201")
    count = len({row.name for row in every("flag")})
    assert f"    {count} flags of vllm serve, each with its releases" in out


def test_how_it_was_reproduced(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = explain(monkeypatch, capsys, "FIT105")
    shown = out[out.index("How it was reproduced") :].splitlines()
    assert shown[1].startswith("    $ reasonctl audit --model fixture:qwen3 --parser deepseek_r1 --select FIT105")
    assert shown[-1] == '    $ python -m pytest tests -k "fit105 or content_null"'


def test_slug_and_lower_case_name_the_same_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = {explain(monkeypatch, capsys, name) for name in ("INT904", "int904", "result-lost")}
    assert len(pages) == 1


def test_example_keeps_its_shape(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = explain(monkeypatch, capsys, "INT904")
    lines = out.splitlines()
    start = lines.index("Example")
    assert lines[start + 1 : start + 3] == [
        "    error INT904 result-lost: the parser gave no answer within 60 s",
        "      at  trace t7, parser my_parser",
    ]


def test_unknown_rule_offers_the_nearest(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = explain(monkeypatch, capsys, "result-los")
    assert (code, out) == (2, "")
    assert err.startswith("reasonctl: no rule is called 'result-los'; did you mean result-lost")


def test_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(formats, "colour", lambda stream: True)
    _, out, _ = explain(monkeypatch, capsys, "INT904")
    assert "\x1b[36m`--debug`\x1b[0m" in out


def test_paragraphs_are_joined() -> None:
    assert paragraphs("One\n        two.\n\n        Three.\n") == ["One two.", "Three."]
