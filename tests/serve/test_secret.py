"""What names and refusals may tell of a shell's conditions and variables."""

from __future__ import annotations

import pytest

from reasonctl.serve.command import ServeCommand
from reasonctl.serve.read import servers_in
from reasonctl.serve.secret import holds_secret


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "TOKEN", "OPENAI_API_KEY", "APIKEY", "apiKey", "githubToken", "DB_PASSWORD", "X_SECRET_1", "AUTH",
     "AWS_ACCESS_KEY_ID", "aws-secret-access-key", "PASSPHRASE", "KEYS", "HF_TOKEN_FILE", "SECRET_NAME"],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert holds_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "PASS_THROUGH_ARGS",
        "KEY_CACHE_DTYPE",
        "AUTH_ARGS",
        "PARSER",
        "MAX_TOKENS",
        "MODEL",
        "TOKENIZER",
        "THINK_END_TOKEN",
        "EOS_TOKEN",
        "MONKEY",
        "AUTHOR",
        "PATH",
    ],
)
def test_names_of_no_secrets(name: str) -> None:
    assert not holds_secret(name)


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ('[ "$TOOLS" = 1 ]', "[ $TOOLS = 1 ]"),
        ('[ -n "$A" ]', "[ -n $A ]"),
        ('[ "${SIZE#x}" = large ]', "[ $SIZE = large ]"),
        ('[[ "$MODEL" == *Qwen* && -f /etc/x.yaml ]]', "[[ $MODEL == *Qwen* && -f /etc/x.yaml ]]"),
        ('[ "$P" = deepseek_r1 ]', "[ $P = deepseek_r1 ]"),
        ('[ "$P" = correct-horse-battery ]', "[ $P = … ]"),
        ('[ "$ADMIN_PASSWORD" = hunter ]', "[ $ADMIN_PASSWORD = … ]"),
        ('[ "$(nvidia-smi -L | wc -l)" -gt 16384 ]', "[ $(nvidia-smi …) -gt 16384 ]"),
        ("/usr/bin/curl -sf -u a:b http://x", "curl …"),
        ("K=v nvidia-smi", "nvidia-smi"),
        ("nvidia-smi -L | grep -q H100", "nvidia-smi … | grep …"),
    ],
)  # fmt: skip
def test_conditions(condition: str, told: str) -> None:
    script = f"if {condition}; then P=qwen3; else P=glm45; fi\nvllm serve m --reasoning-parser $P"
    assert {server.name for server in servers_in(script, path="run.sh")} == {f"m (if {told})", f"m (unless {told})"}


def test_conditions_that_are_told_alike_are_numbered() -> None:
    script = "case $X in first-secret) P=a;; other-secret) P=b;; *) P=c;; esac\nvllm serve m --reasoning-parser $P"
    found = {s.reasoning_parser: s.name for s in servers_in(script, path="run.sh") if isinstance(s, ServeCommand)}
    assert found == {
        "a": "m (if $X is …)",
        "b": "m (unless $X is …, if $X is … (2))",
        "c": "m (unless $X is …, unless $X is … (2))",
    }


def test_a_secret_decides_a_condition_and_is_known_nowhere_else() -> None:
    script = (
        'TOKEN=x\nif [ "$TOKEN" = x ]; then P=qwen3; else P=glm45; fi\nvllm serve m --reasoning-parser $P --port $TOKEN'
    )
    (server,) = servers_in(script, path="run.sh")
    assert isinstance(server, ServeCommand)
    assert (server.reasoning_parser, server.flags["port"].dynamic, server.flags["port"].value) == (
        "qwen3",
        True,
        "$TOKEN",
    )
