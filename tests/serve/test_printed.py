"""What a server printed of itself at its start, and containers in documents of any kind."""

# ruff: noqa: E501  (logs and manifests stand here as they are written)

from __future__ import annotations

import json
from pathlib import Path

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


@pytest.mark.parametrize(
    ("text", "path", "version"),
    [
        ('FROM vllm/vllm-openai:v0.19.0 AS build\nFROM build\nCMD ["m"]\n', "Dockerfile", "0.19.0"),
        ('ARG V=v0.30.0\nFROM --platform=linux/amd64 vllm/vllm-openai:${V}\nCMD ["m"]\n', "Dockerfile", "0.30.0"),
        ("FROM python:3.12\nRUN pip install vllm==0.29.0\nCMD vllm serve m\n", "Dockerfile", "0.29.0"),
        ("apptainer exec --nv docker://vllm/vllm-openai:v0.19.0 vllm serve m\n", "x.sh", "0.19.0"),
        ("srun --container-image=vllm/vllm-openai:v0.32.0 vllm serve m\n", "x.sh", "0.32.0"),
        ("uvx --from 'vllm==0.20.0' vllm serve m\n", "x.sh", "0.20.0"),
        ("uv pip install 'vllm[audio]==0.31.0'\nvllm serve m\n", "x.sh", "0.31.0"),
        ("docker run public.ecr.aws/deep-learning-containers/vllm:0.22.0-gpu --model m\n", "x.sh", "0.22.0"),
    ],
)
def test_where_else_a_version_stands(text: str, path: str, version: str) -> None:
    assert str(one(text, path).target) == f"vllm=={version}"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("# needs vllm==0.20.0\nvllm serve m\n", "x.sh"),
        ("pip install vllm==0.20.0 || pip install vllm==0.21.0\nvllm serve m\n", "x.sh"),
        ('ARG V\nFROM vllm/vllm-openai:${V}\nCMD ["m"]\n', "Dockerfile"),
    ],
)
def test_what_tells_no_version(text: str, path: str) -> None:
    assert [s.target for s in servers_in(text, path=path) if isinstance(s, ServeCommand)] in ([None], [])


RUNTIME = (
    "kind: ServingRuntime\nmetadata: {name: r}\nspec: {containers: [{name: c, image: 'vllm/vllm-openai:v0.33.0',"
    " args: [--model=/mnt/models, '--served-model-name={{.Name}}']}]}\n---\n"
    "kind: InferenceService\nmetadata: {name: i}\nspec: {predictor: {model: {runtime: r, storageUri: URI}}}\n"
)


def test_kserve_puts_the_hubs_model_where_the_runtime_looks() -> None:
    found = one(RUNTIME.replace("URI", "hf://org/m"))
    assert (found.model, found.text("served-model-name")) == ("org/m", "i")
    assert one(RUNTIME.replace("URI", "pvc://v/m")).model == "/mnt/models"


def test_gpustacks_list_of_models() -> None:
    found = one("- name: q\n  huggingface_repo_id: org/m\n  backend_parameters: ['--reasoning-parser=qwen3']\n")
    assert (found.name, found.model, found.reasoning_parser) == ("q", "org/m", "qwen3")


def test_llama_swaps_macros() -> None:
    text = "macros:\n  vl: vllm serve --port ${PORT}\nmodels:\n  q:\n    cmd: |\n      ${vl} org/m\n      --reasoning-parser qwen3\n"
    assert (one(text).model, one(text).reasoning_parser) == ("org/m", "qwen3")


def test_a_flag_and_its_value_in_one_argument() -> None:
    pod = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: 'vllm/vllm-openai:v0.33.0', args: [ARGS]}]}\n"
    (found,) = servers_in(pod.replace("ARGS", "--model=m, '--reasoning-parser qwen3'"), path="p.yaml", forgiving=True)
    assert isinstance(found, ServeCommand)
    assert found.reasoning_parser == "qwen3"
    assert ["are one argument" in error.message for error in found.broken] == [True]
    (keyed,) = servers_in(pod.replace("ARGS", "--model=m, '--api-key sk-secret'"), path="p.yaml", forgiving=True)
    assert isinstance(keyed, ServeCommand)
    assert ["sk-secret" in str(error) for error in keyed.broken] == [False]
    (mapping,) = servers_in(pod.replace("ARGS", "--model=m, --default-chat-template-kwargs, {a: true}"), path="p.yaml")
    assert isinstance(mapping, ServeCommand)
    assert mapping.default_chat_template_kwargs == {"a": True}


@pytest.mark.parametrize(
    "text",
    [
        "model: vllm\nmodel_args: {pretrained: m}\ntasks: [gsm8k]\n",
        '{"model": "m", "messages": [], "max_tokens": 1}',
    ],
)
def test_other_files_that_name_a_model_are_no_config(text: str) -> None:
    assert servers_in(text, path="x.yaml") == []


def test_a_walk_wants_to_be_sure_of_a_config(tmp_path: Path) -> None:
    from reasonctl.serve.read import read_folder

    (tmp_path / "train.yaml").write_text("# vllm\nmodel: m\ndtype: bfloat16\nseed: 1\nmax_model_len: 8192\n")
    (tmp_path / "vllm.yaml").write_text("model: n\nreasoning-parser: qwen3\nmax_model_len: 8192\n")
    found, _ = read_folder(str(tmp_path))
    assert [server.model for server in found if isinstance(server, ServeCommand)] == ["n"]
    assert one((tmp_path / "train.yaml").read_text()).model == "m"
