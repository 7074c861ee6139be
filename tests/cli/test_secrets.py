"""What a serve command, a client or a request holds of keys, tokens and passwords reaches no report and no refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reasonctl.errors import InputError
from reasonctl.serve.command import ServeCommand
from reasonctl.serve.read import read_serve

COMMAND = "audit"
Run = Callable[..., tuple[int, str, str]]
CANARY = "Zq7CANARYx9"
TRIED_ALONE = (
    "a quote that never closes",
    "broken JSON",
    "broken YAML",
    "a password as a number",
    "a command as the parser",
)
"""Refused when they are named, and read as far as it goes in a folder."""
FORMATS = ("text", "concise", "json", "sarif", "junit", "github", "gitlab", "markdown")

OTHERWISE = "then P=qwen3; else P=deepseek_r1; fi\nvllm serve m --reasoning-parser $P\n"
POD = """kind: Pod
apiVersion: v1
metadata: {{name: x}}
spec:
  containers:
  - name: v
    image: vllm/vllm-openai:v0.33.0
    env: [{{name: HF_TOKEN, value: {canary}}}, {{name: VLLM_API_KEY, value: {canary}}}]
    command: [sh, -c, "{line}"]
"""

SERVERS = {
    "a compared token": ("x.sh", f'if [ "$HF_TOKEN" = "{CANARY}" ]; {OTHERWISE}'),
    "a compared something": ("x.sh", f'if [ "$X" = "{CANARY}" ]; {OTHERWISE}'),
    "a double bracket": ("x.sh", f'if [[ -n "$A" && "$X" == *{CANARY}* ]]; {OTHERWISE}'),
    "a header": ("x.sh", f'if curl -sf -H "Authorization: Bearer {CANARY}" http://v/x; {OTHERWISE}'),
    "a header inside": ("x.sh", f'if [ "$(curl -H "X-Key: {CANARY}" http://v)" = ok ]; {OTHERWISE}'),
    "backquotes": ("x.sh", f"if [ `curl -H X-Key:{CANARY} http://v` = ok ]; {OTHERWISE}"),
    "a variable before": ("x.sh", f"if VAULT={CANARY} vault status; {OTHERWISE}"),
    "a default": ("x.sh", f'if [ -n "${{X:-{CANARY}}}$(date)" ]; {OTHERWISE}'),
    "a pipe": ("x.sh", f"if echo {CANARY} | vault login -; {OTHERWISE}"),
    "a chain": ("x.sh", f"vault login {CANARY} && P=qwen3 || P=glm45\nvllm serve m --reasoning-parser $P\n"),
    "a case": ("x.sh", f"case $X in {CANARY}) P=qwen3;; *) P=glm45;; esac\nvllm serve m --reasoning-parser $P\n"),
    "a key as the parser": ("x.sh", f"HF_TOKEN={CANARY}\nvllm serve m --reasoning-parser $HF_TOKEN\n"),
    "a key behind a name": ("x.sh", f"HF_TOKEN={CANARY}\nP=$HF_TOKEN\nvllm serve m --reasoning-parser $P\n"),
    "a password as a number": ("x.sh", f"PASSWORD={CANARY}\nvllm serve m --max-model-len $PASSWORD\n"),
    "a command as the parser": ("x.sh", f'vllm serve m --reasoning-parser "$(curl -H X:{CANARY} http://v)"\n'),
    "a command as the kwargs": ("x.sh", f'vllm serve m --default-chat-template-kwargs "$(curl -u {CANARY} v)"\n'),
    "a default as the parser": ("x.sh", f"vllm serve m --reasoning-parser ${{HF_TOKEN:-{CANARY}}}$X\n"),
    "the api key": ("x.sh", f"vllm serve m --api-key {CANARY} --hf-token={CANARY} --reasoning-parser qwen3\n"),
    "a flag nobody has": ("x.sh", f"vllm serve m --apy-key={CANARY} --my-key {CANARY} --reasoning-parser qwen3\n"),
    "in the environment": ("x.sh", f"HF_TOKEN={CANARY} vllm serve m --reasoning-parser deepseek_r1\n"),
    "a pod": ("x.yaml", POD.format(canary=CANARY, line="vllm serve m --reasoning-parser $HF_TOKEN")),
    "a pod's own": ("x.yaml", POD.format(canary=CANARY, line="vllm serve m --reasoning-parser $(HF_TOKEN)")),
    "a pod's script": ("x.yaml", POD.format(canary="y", line=f"export K={CANARY}; vllm serve m --reasoning-parser no")),
    "a wrapper": ("x.env", f"SM_VLLM_MODEL=m\nSM_VLLM_API_KEY={CANARY}\nSM_VLLM_REASONING_PARSER=deepseek_r1\n"),
    "another wrapper": (
        "x.yaml",
        "services: {a: {image: 763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.20.0-gpu-sagemaker, environment: "
        f"{{SM_VLLM_MODEL: m, OPTION_API_KEY: {CANARY}}}}}}}\n",
    ),
    "a password in an address": ("x.sh", f"vllm serve https://u:{CANARY}@h/m --reasoning-parser deepseek_r1\n"),
    "an open word": ("x.sh", f'vllm serve m $(curl -H "X-Key: {CANARY}" http://v) --reasoning-parser deepseek_r1\n'),
    "flags nobody knows": ("x.sh", f'vllm serve m $(curl -H "X-Key: {CANARY}" http://v)\n'),
    "two in one": (
        "x.yaml",
        "kind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: v, image: 'vllm/vllm-openai:v0.33.0', "
        f"args: ['--model m', '--api-key {CANARY}', '--reasoning-parser no']}}]}}\n",
    ),
    "docker": ("x.sh", f"docker run -e HF_TOKEN={CANARY} vllm/vllm-openai:v0.30.0 --model m --reasoning-parser no\n"),
    "a unit": ("x.service", f"[Service]\nEnvironment=K={CANARY}\nExecStart=vllm serve m --reasoning-parser no\n"),
    "a log": (
        "x.log",
        f"INFO [utils.py] non-default args: {{'model_tag': 'm', 'api_key': ['{CANARY}'], 'reasoning_parser': 'no'}}\n",
    ),
    "a config": ("x.yaml", f"model: m\napi-key: {CANARY}\nhf-token: {CANARY}\nreasoning-parser: deepseek_r1\n"),
    "a quote that never closes": ("x.sh", f"vllm serve m --api-key '{CANARY}\n"),
    "broken JSON": ("x.sh", f"vllm serve m --api-key {CANARY} --default-chat-template-kwargs '{{{CANARY}'\n"),
    "broken YAML": ("x.yaml", f"model: m\napi-key: '{CANARY}\nreasoning-parser: [deepseek_r1\n"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_no_secret_of_a_serve_command_is_told(run: Run, tmp_path: Path, name: str) -> None:
    file, text = SERVERS[name]
    folder = tmp_path / "deploy"
    folder.mkdir()
    (folder / file).write_text(text)
    written = [tmp_path / form for form in FORMATS[1:]]
    formats = [part for path in written for part in ("--format", f"{path.name}={path}")]
    source = str(folder / file) if name in TRIED_ALONE else str(folder)
    _, out, err = run(source, "--model", "fixture:qwen3", "--verbose", "--format", "text", *formats)
    assert out + err
    assert CANARY not in out + err
    assert [path.name for path in written if path.exists() and CANARY in path.read_text()] == []


@pytest.mark.parametrize("given", ["--serve", None])
def test_a_call_that_is_no_command_line_is_not_repeated(run: Run, given: str | None) -> None:
    call = [part for part in (given, f"volm serve m --api-key {CANARY}") if part]
    code, out, err = run(*call, "--model", "fixture:qwen3")
    assert (code, out) == (2, "")
    assert "no such file, and no command line" in err
    assert CANARY not in err


CLIENTS = {
    "c.py": f'r = post(headers={{"Authorization": "Bearer {CANARY}"}}).json()["{CANARY}"]["reasoning_content"]',
    "d.py": f'r = f("{CANARY}").reasoning_content or g("{CANARY}")["x"].get("reasoning_content", "{CANARY}")',
    "c.sh": f'curl -H "Authorization: Bearer {CANARY}" h | jq -r ".choices[0].message.reasoning_content"',
    "c.ts": f'const r = (await get("{CANARY}")).choices[0].message.reasoning_content; // {CANARY}',
    "c.yaml": f"extract: {{key: {CANARY}, path: 'message.reasoning_content'}}",
    "c.json": f'{{"key": "{CANARY}", "path": "$.message.reasoning_content"}}',
}


@pytest.mark.parametrize("name", CLIENTS)
def test_no_secret_of_a_client_is_told(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CLIENTS[name] + "\n")
    call = ("--serve", "vllm serve m --reasoning-parser qwen3", "--client", str(tmp_path / name))
    for form in FORMATS:
        code, out, err = run(*call, "--format", form, "--select", "SRV208")
        assert (code, err) == (1, "")
        assert "SRV208" in out
        assert CANARY not in out, form


@pytest.mark.parametrize(
    "value",
    [
        f"$(curl -H X:{CANARY} http://v)",
        f"`curl -u {CANARY} v`",
        f"${{A:-{CANARY}$(date)}}",
        f"{CANARY}$A",
        "$HF_TOKEN",
    ],
)
def test_a_refusal_names_what_is_unknown_and_no_more(tmp_path: Path, value: str) -> None:
    script = tmp_path / "x.sh"
    script.write_text(f'HF_TOKEN={CANARY}\nvllm serve m --reasoning-parser "{value}"\n')
    (server,) = read_serve(str(script))
    assert isinstance(server, ServeCommand)
    with pytest.raises(InputError, match=r"--reasoning-parser takes \$[(A-Z]") as refused:
        _ = server.reasoning_parser
    assert CANARY not in str(refused.value)
