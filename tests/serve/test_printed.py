"""What a server printed of itself at its start, and containers in documents of any kind."""

# ruff: noqa: E501  (logs and manifests stand here as they are written)

from __future__ import annotations

import json

import pytest

from reasonctl.serve.command import ServeCommand
from reasonctl.serve.read import servers_in

OLD = (
    "INFO 03-03 07:11:12 api_server.py:912] vLLM API server version 0.7.3\n"
    "INFO 03-03 07:11:12 api_server.py:913] args: Namespace(subparser='serve', model_tag='org/r1', config='', api_key='sk-1', "
    "enable_reasoning=True, reasoning_parser='deepseek_r1', tool_call_parser=None, model='org/r1', "
    "dispatch_function=<function ServeSubcommand.<locals>.cmd at 0x7f0>)\n"
)


def one(text: str, path: str = "x.yaml") -> ServeCommand:
    (found,) = servers_in(text, path=path)
    assert isinstance(found, ServeCommand)
    return found


def test_the_log_of_a_release_that_prints_its_functions() -> None:
    found = one(OLD, "x.log")
    assert (str(found.target), found.model, found.reasoning_parser) == ("vllm==0.7.3", "org/r1", "deepseek_r1")
    assert found.on("enable-reasoning")
    assert "api-key" not in found.flags


@pytest.mark.parametrize(
    "value",
    [
        "{'level': None, 'cudagraph_mode': <CUDAGraphMode.FULL_DECODE_ONLY: (2, 0)>}",
        "[<A.B: 1>]",
        "CompilationConfig(mode=<CompilationMode.VLLM_COMPILE: 3>)",
        "inf",
        "datetime.timedelta(seconds=3)",
        "'a > b \\' < c {'",
    ],
)
def test_a_log_with_printed_objects_is_read_for_the_rest(value: str) -> None:
    args = f"{{'model_tag': 'org/m', 'compilation_config': {value}, 'download_dir': PosixPath('/d'), 'reasoning_parser': 'qwen3'}}"
    found = one(f"INFO [api_server.py] vLLM API server version 0.33.0\nINFO non-default args: {args}\n", "x.log")
    assert (found.model, found.reasoning_parser, found.text("download-dir")) == ("org/m", "qwen3", "/d")


def test_an_objects_readable_parts_are_kept() -> None:
    args = "{'model_tag': 'm', 'structured_outputs_config': StructuredOutputsConfig(backend=<B.A: 1>, enable_in_reasoning=True)}"
    found = one(f"INFO non-default args: {args}\n", "x.log")
    assert found.json("structured-outputs-config") == {"enable_in_reasoning": True}


ECS = {
    "containerDefinitions": [
        {
            "name": "chat",
            "image": "vllm/vllm-openai:v0.9.2",
            "command": ["--model", "org/m", "--reasoning-parser", "qwen3"],
            "environment": [{"name": "VLLM_USE_V2_MODEL_RUNNER", "value": "0"}],
        }
    ]
}
SAGEMAKER = {
    "PrimaryContainer": {
        "Image": "1.dkr.ecr.us-east-1.amazonaws.com/vllm:0.20.0-gpu",
        "Environment": {"SM_VLLM_MODEL": "org/m", "SM_VLLM_REASONING_PARSER": "qwen3"},
    }
}
TERRAFORM = {"values": {"resources": [{"values": {"container_definitions": json.dumps(ECS["containerDefinitions"])}}]}}
ANSIBLE = "- hosts: gpu\n  tasks:\n  - community.docker.docker_container:\n      name: chat\n      image: vllm/vllm-openai:v0.9.2\n      command: --model org/m --reasoning-parser qwen3\n"


@pytest.mark.parametrize(
    ("text", "name", "target"),
    [
        (json.dumps(ECS), "chat", "vllm==0.9.2"),
        (json.dumps(TERRAFORM), "chat", "vllm==0.9.2"),
        (json.dumps(SAGEMAKER), "PrimaryContainer", "vllm==0.20.0"),
        (ANSIBLE, "chat", "vllm==0.9.2"),
    ],
)
def test_a_container_of_any_document_with_the_image_beside_its_command(text: str, name: str, target: str) -> None:
    found = one(text, "x.json" if text[0] == "{" else "x.yml")
    assert (found.name, str(found.target), found.model, found.reasoning_parser) == (name, target, "org/m", "qwen3")


STACK = """servingEngineSpec:
  modelSpec:
  - {name: chat, repository: vllm/vllm-openai, tag: v0.30.0, modelURL: org/m, vllmConfig: {extraArgs: [--reasoning-parser, qwen3]}}
"""


def indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}" for line in text.splitlines(keepends=True))


@pytest.mark.parametrize(
    "text",
    [
        f"kind: Application\nmetadata: {{name: a}}\nspec:\n  source:\n    helm:\n      values: |\n{indented(STACK, 8)}",
        f"kind: Application\nmetadata: {{name: a}}\nspec:\n  source:\n    helm:\n      valuesObject:\n{indented(STACK, 8)}",
        f"kind: Application\nmetadata: {{name: a}}\nspec:\n  sources:\n  - helm:\n      values: |\n{indented(STACK, 8)}",
        f"kind: HelmRelease\nmetadata: {{name: a}}\nspec:\n  values:\n{indented(STACK, 4)}",
        f"kind: HelmChart\nmetadata: {{name: a}}\nspec:\n  valuesContent: |\n{indented(STACK, 4)}",
    ],
)
def test_the_values_of_a_chart_in_argo_flux_and_k3s(text: str) -> None:
    found = one(text)
    assert (found.name, str(found.target), found.model, found.reasoning_parser) == (
        "chat",
        "vllm==0.30.0",
        "org/m",
        "qwen3",
    )
    assert found.place("reasoning-parser").path == "x.yaml"


def test_nodes_that_answer_no_client() -> None:
    lws = (
        "kind: LeaderWorkerSet\nmetadata: {name: l}\nspec:\n  leaderWorkerTemplate:\n    workerTemplate:\n      spec:\n"
        "        containers: [{name: w, command: [vllm, serve, m, --headless]}]\n"
    )
    assert not one(lws).answers
    kserve = (
        "kind: LLMInferenceService\nmetadata: {name: l}\nspec:\n  model: {uri: 'hf://org/m'}\n  prefill:\n    template:\n"
        "      containers: [{name: main, image: 'vllm/vllm-openai:v0.33.0'}]\n  template:\n"
        "    containers: [{name: main, image: 'vllm/vllm-openai:v0.33.0'}]\n"
    )
    found = [s for s in servers_in(kserve, path="k.yaml") if isinstance(s, ServeCommand)]
    assert {s.name: s.answers for s in found} == {"LLMInferenceService/l": True, "LLMInferenceService/l/prefill": False}
    producer = 'vllm serve m --kv-transfer-config \'{"kv_connector": "X", "kv_role": "kv_producer"}\''
    assert not one(producer, "x.sh").answers
    assert one(producer.replace("producer", "both"), "x.sh").answers
