"""Every form a serve command comes in: the server, its flags, its version, and where each stands."""

# ruff: noqa: E501  (manifests stand here as people write them)

from __future__ import annotations

from pathlib import Path

import pytest

from reasonctl.errors import InputError
from reasonctl.parsers.target import Target
from reasonctl.serve.command import OtherServer, ServeCommand
from reasonctl.serve.read import read_folder, read_serve, servers_in


def servers(text: str, path: str = "x.yaml") -> list[ServeCommand]:
    found = servers_in(text, path=path)
    assert all(isinstance(server, ServeCommand) for server in found), found
    return [server for server in found if isinstance(server, ServeCommand)]


def one(text: str, path: str = "x.yaml") -> ServeCommand:
    (found,) = servers(text, path)
    return found


def version(server: ServeCommand) -> str | None:
    return None if server.target is None else server.target.version_text


SCRIPT = """#!/bin/bash
MODEL=${MODEL:-org/m}
ARGS=(--max-model-len 8192 --reasoning-parser "${PARSER:-qwen3}")
[ "$TOOLS" = 1 ] && ARGS+=(--enable-auto-tool-choice --tool-call-parser hermes)
exec vllm serve "$MODEL" "${ARGS[@]}"
"""


def test_a_script_with_arrays_and_an_open_condition_gives_both_servers() -> None:
    found = servers(SCRIPT, "run.sh")
    assert [(s.model, s.reasoning_parser, s.max_model_len) for s in found] == [("org/m", "qwen3", 8192)] * 2
    assert {s.name: s.enable_auto_tool_choice for s in found} == {
        "org/m (if [ $TOOLS = 1 ])": True,
        "org/m (unless [ $TOOLS = 1 ])": False,
    }
    place = found[0].place("reasoning-parser")
    assert (place.line, place.column) == (3, 28)


def test_a_condition_that_the_script_itself_decides_gives_one_server() -> None:
    (found,) = servers("TOOLS=0\n" + SCRIPT, "run.sh")
    assert not found.enable_auto_tool_choice
    assert found.name == "org/m"


@pytest.mark.parametrize(
    ("script", "parsers"),
    [
        ("P=qwen3\nif true; then\n  vllm serve m --reasoning-parser $P\nelse\n  vllm serve n\nfi\n", ["qwen3"]),
        ('P=a\nif [ "$P" = a ]; then P=qwen3; else P=glm45; fi\nvllm serve m --reasoning-parser $P', ["qwen3"]),
        ("for M in a b; do vllm serve $M --reasoning-parser p-$M & done", ["p-a", "p-b"]),
        ("run() { vllm serve $1 --reasoning-parser $2; }\nrun m qwen3\nrun n glm45", ["qwen3", "glm45"]),
        ('F="--reasoning-parser qwen3 --port 1"\nvllm serve m $F', ["qwen3"]),
        ("case a in a) P=qwen3;; *) P=no;; esac\nvllm serve m --reasoning-parser $P", ["qwen3"]),
        ("D=/models/qwen3\nvllm serve m --reasoning-parser ${D##*/}", ["qwen3"]),
        ("cat > f <<'EOF'\nit's a \"file\nEOF\nvllm serve m --reasoning-parser qwen3", ["qwen3"]),
        ("ssh host 'vllm serve m --reasoning-parser qwen3'", ["qwen3"]),
        ('bash -c "vllm serve m --reasoning-parser qwen3"', ["qwen3"]),
        ("ssh host bash <<EOF\nvllm serve m --reasoning-parser qwen3\nEOF", ["qwen3"]),
        ("A=()\nA+=(--reasoning-parser)\nA+=(qwen3)\nvllm serve m ${A[@]}", ["qwen3"]),
        ("test -f x || exit 1\nvllm serve m --reasoning-parser qwen3", ["qwen3"]),
        ("export P=qwen3; vllm serve m --reasoning-parser ${P}", ["qwen3"]),
        ('[ -z "" ] && P=qwen3\nvllm serve m --reasoning-parser $P', ["qwen3"]),
        ("[[ -n x ]] && P=qwen3\nvllm serve m --reasoning-parser $P", ["qwen3"]),
        ("while true; do vllm serve m --reasoning-parser qwen3; sleep 1; done", ["qwen3"]),
        ("vllm serve m ${X:+--port 1} --reasoning-parser qwen3", ["qwen3"]),
    ],
)
def test_what_scripts_do(script: str, parsers: list[str]) -> None:
    assert [server.reasoning_parser for server in servers(script, "run.sh")] == parsers


def test_an_open_branch_with_two_parsers_is_two_servers() -> None:
    found = servers('if [ -n "$A" ]; then P=qwen3; else P=glm45; fi\nvllm serve m --reasoning-parser $P', "run.sh")
    assert sorted(server.reasoning_parser or "" for server in found) == ["glm45", "qwen3"]
    assert {server.name for server in found} == {"m (if [ -n $A ])", "m (unless [ -n $A ])"}


@pytest.mark.parametrize("word", ["if true; then\n vllm serve m", "case a in b) vllm serve m", "f() { vllm serve m"])
def test_a_script_that_never_closes_what_it_opens_is_refused(word: str) -> None:
    with pytest.raises(InputError, match="close it"):
        servers(word, "run.sh")


def test_docker_run() -> None:
    found = one(
        "docker run --gpus all -it --rm -p 8000:8000 -e VLLM_USE_V2_MODEL_RUNNER=1 --name chat \\\n"
        "  vllm/vllm-openai:v0.30.0 --model org/m --reasoning-parser qwen3",
        "run.sh",
    )
    assert (found.name, found.model, found.reasoning_parser, found.runner) == ("chat", "org/m", "qwen3", "v2")
    assert version(found) == "0.30.0"
    assert found.place("reasoning-parser").line == 2
    assert found.image_at is not None and (found.image_at.line, found.image_at.column) == (2, 3)


COMPOSE = """x-base: &base {image: "vllm/vllm-openai:${TAG:-v0.30.0}", ipc: host}
services:
  chat:
    <<: *base
    command: >
      --model ${MODEL:-org/m} --reasoning-parser qwen3
      --tool-call-parser hermes --enable-auto-tool-choice
    environment:
      - VLLM_USE_V2_MODEL_RUNNER=0
      - SECRET_TOKEN=hunter2
  other:
    extends: {service: chat}
    entrypoint: ["vllm", "serve"]
    command: ["org/n", "--reasoning-parser", "glm45"]
  redis:
    image: redis:7
    command: redis-server --save 60 1
"""


def test_compose() -> None:
    found = {server.name: server for server in servers(COMPOSE, "compose.yaml")}
    assert sorted(found) == ["chat", "other"]
    chat, other = found["chat"], found["other"]
    assert (chat.model, chat.reasoning_parser, chat.runner, version(chat)) == ("org/m", "qwen3", "v1", "0.30.0")
    assert chat.enable_auto_tool_choice
    place = chat.place("reasoning-parser")
    assert (place.line, place.column) == (6, 31)
    assert (other.model, other.reasoning_parser, version(other)) == ("org/n", "glm45", "0.30.0")
    assert other.place("reasoning-parser").line == 14


def test_compose_reads_dot_env_and_env_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MODEL=org/from-env\n")
    (tmp_path / "server.env").write_text("SM_VLLM_REASONING_PARSER=qwen3\n# comment\nVLLM_USE_V2_MODEL_RUNNER='1'\n")
    file = tmp_path / "compose.yaml"
    file.write_text(
        "services:\n  a:\n    image: x.dkr.ecr.eu-west-1.amazonaws.com/vllm:0.20.0-gpu\n"
        "    env_file: server.env\n    command: --model $MODEL\n"
    )
    (found,) = read_serve(str(file))
    assert isinstance(found, ServeCommand)
    assert (found.model, found.reasoning_parser, found.runner) == ("org/from-env", "qwen3", "v2")
    assert (version(found), found.platform) == ("0.20.0", "AWS vLLM container")


@pytest.mark.parametrize(
    ("text", "kwargs"),
    [
        (
            "model: org/m\nreasoning-parser: qwen3\ndefault-chat-template-kwargs: '{\"enable_thinking\": false}'\n",
            False,
        ),
        ("model: org/m\nreasoning_parser: qwen3\ndefault_chat_template_kwargs: {enable_thinking: false}\n", False),
        ("model: org/m\nreasoning-parser: qwen3\ndefault-chat-template-kwargs.enable_thinking: false\n", False),
    ],
)
def test_vllms_own_configuration_file(text: str, kwargs: bool) -> None:
    found = one(text)
    assert (found.model, found.reasoning_parser) == ("org/m", "qwen3")
    assert found.default_chat_template_kwargs == {"enable_thinking": kwargs}
    assert found.place("reasoning-parser").line == 2


def test_a_configuration_file_that_a_command_line_names_comes_below_it(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("model: org/m\nreasoning-parser: glm45\nmax-model-len: 4096\n")
    file = tmp_path / "run.sh"
    file.write_text("vllm serve --config c.yaml --reasoning-parser qwen3\n")
    (found,) = read_serve(str(file))
    assert isinstance(found, ServeCommand)
    assert (found.model, found.reasoning_parser, found.max_model_len) == ("org/m", "qwen3", 4096)


DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  template:
    spec:
      initContainers:
      - {name: fetch, image: busybox, command: [sh, -c, "echo vllm serve nothing"]}
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.30.0
        command: ["/bin/bash", "-lc"]
        args: ["exec vllm serve $(MODEL) --reasoning-parser qwen3"]
        env:
        - {name: MODEL, value: /mnt/models}
        - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}
      - name: proxy
        image: nginx:1
        args: ["-g", "daemon off;"]
---
apiVersion: v1
kind: Service
metadata: {name: chat}
"""


def test_a_deployment() -> None:
    found = one(DEPLOYMENT)
    assert (found.name, found.model, found.reasoning_parser) == ("Deployment/chat/vllm", "/mnt/models", "qwen3")
    assert version(found) == "0.30.0"
    place = found.place("reasoning-parser")
    assert place.line == 13
    assert found.image_at is not None and found.image_at.line == 11


def test_what_kubectl_prints_is_a_list_of_manifests() -> None:
    found = one(
        '{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c",'
        ' "image": "vllm/vllm-openai:v0.32.0", "args": ["org/m", "--reasoning-parser=qwen3"]}]}}]}',
        "pods.json",
    )
    assert (found.name, found.model, version(found)) == ("Pod/p/c", "org/m", "0.32.0")


def test_a_script_in_a_config_map() -> None:
    found = one(
        "kind: ConfigMap\nmetadata: {name: scripts}\ndata:\n  start.sh: |\n    #!/bin/sh\n"
        "    vllm serve org/m \\\n      --reasoning-parser qwen3\n---\n"
        "kind: StatefulSet\nmetadata: {name: s}\nspec:\n  template:\n    spec:\n      containers:\n"
        "      - {name: main, image: 'vllm/vllm-openai:v0.31.0', command: [bash, /scripts/start.sh]}\n"
    )
    assert (found.name, found.reasoning_parser, version(found)) == ("StatefulSet/s/main", "qwen3", "0.31.0")
    assert found.place("reasoning-parser").line == 7


def test_leader_and_workers_are_told_apart() -> None:
    found = servers(
        "kind: LeaderWorkerSet\nmetadata: {name: l}\nspec:\n  leaderWorkerTemplate:\n"
        "    leaderTemplate: {spec: {containers: [{name: c, command: [vllm, serve, org/m]}]}}\n"
        "    workerTemplate: {spec: {containers: [{name: c, command: [vllm, serve, org/m, --headless]}]}}\n"
    )
    assert [server.name for server in found] == ["LeaderWorkerSet/l/leader/c", "LeaderWorkerSet/l/worker/c"]
    assert [server.on("headless") for server in found] == [False, True]


def test_a_kustomize_patch_has_no_image() -> None:
    found = one(
        "kind: Deployment\nmetadata: {name: decode}\nspec: {template: {spec: {containers: [{name: modelserver,"
        ' command: [vllm, serve], args: ["org/m", "--reasoning-parser=nemotron_v3"]}]}}}\n'
    )
    assert (found.model, found.reasoning_parser, found.target) == ("org/m", "nemotron_v3", None)


def test_production_stack_values() -> None:
    found = one(
        "servingEngineSpec:\n  modelSpec:\n  - name: chat\n    repository: vllm/vllm-openai\n    tag: v0.30.0\n"
        "    modelURL: org/m\n    enableTool: true\n    toolCallParser: hermes\n"
        '    vllmConfig: {maxModelLen: 16384, extraArgs: ["--reasoning-parser", "qwen3", "--max-model-len=2048"]}\n'
    )
    assert (found.name, found.model, found.reasoning_parser, version(found)) == ("chat", "org/m", "qwen3", "0.30.0")
    assert (found.tool_call_parser, found.enable_auto_tool_choice, found.max_model_len) == ("hermes", True, 2048)
    assert found.place("reasoning-parser").line == 9


def test_the_operators_vllm_runtime() -> None:
    found = one(
        "kind: VLLMRuntime\nmetadata: {name: r}\nspec:\n  model: {modelURL: org/m, enableTool: true, toolCallParser: x}\n"
        "  vllmConfig: {extraArgs: [--reasoning-parser, qwen3]}\n"
        "  deploymentConfig: {image: {registry: docker.io, name: 'vllm/vllm-openai:v0.29.0'}}\n"
    )
    assert (found.model, found.reasoning_parser, found.tool_call_parser) == ("org/m", "qwen3", "x")
    assert version(found) == "0.29.0"


LLMISVC = """apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: q}
spec:
  model: {uri: "hf://org/m", name: org/m}
  template:
    containers:
    - name: main
      env:
      - {name: VLLM_ADDITIONAL_ARGS, value: "--reasoning-parser=nemotron_v3 --enable-auto-tool-choice --tool-call-parser=q"}
  prefill:
    template:
      containers:
      - {name: main, args: ["--reasoning-parser=qwen3"]}
"""


def test_kserves_llm_inference_service() -> None:
    first, second = servers(LLMISVC)
    assert (first.name, first.model, first.reasoning_parser) == ("LLMInferenceService/q", "org/m", "nemotron_v3")
    assert (first.enable_auto_tool_choice, first.platform) == (True, "KServe LLMInferenceService")
    assert first.place("reasoning-parser").line == 10
    assert (second.name, second.model, second.reasoning_parser) == ("LLMInferenceService/q/prefill", "org/m", "qwen3")


def test_an_inference_service_adds_to_its_runtime() -> None:
    found = one(
        "kind: InferenceService\nmetadata: {name: i}\nspec: {predictor: {model: {runtime: vllm-cuda,"
        ' storageUri: "pvc://v/m", args: ["--reasoning-parser=qwen3"]}}}\n---\n'
        "kind: ServingRuntime\nmetadata: {name: vllm-cuda}\nspec:\n  containers:\n"
        "  - name: kserve-container\n    image: quay.io/modh/vllm:rhoai-2.20\n"
        '    command: [python, -m, vllm.entrypoints.openai.api_server]\n    args: ["--model=/mnt/models"]\n'
    )
    assert (found.name, found.model, found.reasoning_parser) == ("InferenceService/i", "/mnt/models", "qwen3")
    assert found.target is None


RAY = """applications:
- name: llm
  import_path: ray.serve.llm:build_openai_app
  args:
    llm_configs:
    - model_loading_config: {model_id: chat, model_source: org/m}
      engine_kwargs: {reasoning_parser: qwen3, enable_auto_tool_choice: true, tool_call_parser: hermes}
"""


def test_ray_serve() -> None:
    found = one(RAY)
    assert (found.name, found.model, found.reasoning_parser) == ("chat", "org/m", "qwen3")
    assert found.enable_auto_tool_choice
    nested = "kind: RayService\nmetadata: {name: r}\nspec:\n  serveConfigV2: |\n" + "".join(
        f"    {row}\n" for row in RAY.splitlines()
    )
    inside = one(nested)
    assert (inside.name, inside.reasoning_parser) == ("chat", "qwen3")
    assert inside.place("reasoning-parser").line == 11


def test_ray_serve_in_python() -> None:
    found = one(
        "from ray.serve.llm import LLMConfig\nimport os\nc = LLMConfig(\n"
        '    model_loading_config=dict(model_id="chat", model_source="org/m"),\n'
        '    engine_kwargs=dict(\n        reasoning_parser="qwen3", max_model_len=os.cpu_count(), enforce_eager=True),\n)\n',
        "app.py",
    )
    assert (found.name, found.model, found.reasoning_parser) == ("chat", "org/m", "qwen3")
    assert found.place("reasoning-parser").line == 6
    assert found.on("enforce-eager")


@pytest.mark.parametrize(
    ("text", "path", "engine"),
    [
        (
            "kind: DynamoGraphDeployment\nmetadata: {name: d}\nspec:\n  services:\n    VllmWorker:\n"
            "      extraPodSpec:\n        mainContainer:\n          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.0\n"
            '          command: [python3, -m, dynamo.vllm]\n          args: ["--model", "org/m", "--dyn-reasoning-parser", "q"]\n',
            "d.yaml",
            "NVIDIA Dynamo",
        ),
        ("python -m sglang.launch_server --model-path org/m --reasoning-parser qwen3", "run.sh", "SGLang"),
        ("services: {a: {image: 'lmsysorg/sglang:latest', command: '--model-path m'}}", "c.yaml", "SGLang"),
        ("trtllm-serve org/m --reasoning_parser qwen3", "run.sh", "TensorRT-LLM"),
        ("llama-server -hf org/m --jinja --reasoning-format deepseek", "run.sh", "llama.cpp"),
    ],
)
def test_other_engines_are_named(text: str, path: str, engine: str) -> None:
    (found,) = servers_in(text, path=path)
    assert isinstance(found, OtherServer)
    assert found.engine == engine


def test_systemd_and_quadlet(tmp_path: Path) -> None:
    (tmp_path / "vllm.env").write_text("PARSER=qwen3\n")
    unit = tmp_path / "chat.service"
    unit.write_text(
        "[Unit]\nDescription=x\n[Service]\nEnvironment=VLLM_USE_V2_MODEL_RUNNER=0 A=b\n"
        f"EnvironmentFile=-{tmp_path}/vllm.env\n"
        "ExecStart=/opt/venv/bin/vllm serve org/m \\\n    --reasoning-parser ${PARSER} \\\n    --port 80\n"
    )
    (found,) = read_serve(str(unit))
    assert isinstance(found, ServeCommand)
    assert (found.name, found.model, found.reasoning_parser, found.runner) == ("chat", "org/m", "qwen3", "v1")
    assert found.text("port") == "80"
    quadlet = one(
        "[Container]\nImage=docker.io/vllm/vllm-openai:v0.30.0\nExec=--model org/m --reasoning-parser qwen3\n"
        "Environment=VLLM_USE_V2_MODEL_RUNNER=1\n",
        "chat.container",
    )
    assert (quadlet.model, quadlet.reasoning_parser, quadlet.runner, version(quadlet)) == (
        "org/m",
        "qwen3",
        "v2",
        "0.30.0",
    )
    assert quadlet.place("reasoning-parser").line == 3


@pytest.mark.parametrize(
    ("env", "parser", "platform"),
    [
        (
            "SM_VLLM_MODEL=org/m\nSM_VLLM_REASONING_PARSER=qwen3\nSM_VLLM_ENABLE_AUTO_TOOL_CHOICE=true\n",
            "qwen3",
            "AWS vLLM container",
        ),
        (
            "HF_MODEL_ID=org/m\nOPTION_REASONING_PARSER=deepseek_r1\nOPTION_ENABLE_REASONING=true\n",
            "deepseek_r1",
            "AWS LMI",
        ),
        (
            'MODEL_NAME=org/m\nVLLM_EXTRA_ARGS="--port 1"\nREASONING_PARSER=deepseek_r1\n',
            "deepseek_r1",
            "RunPod worker",
        ),
        ("NIM_PASSTHROUGH_ARGS='--model org/m --reasoning-parser nemotron_v3'\n", "nemotron_v3", "NVIDIA NIM"),
    ],
)
def test_flags_in_the_environment(env: str, parser: str, platform: str) -> None:
    found = one(env, "server.env")
    assert (found.model, found.reasoning_parser, found.platform) == ("org/m", parser, platform)
    assert found.place("reasoning-parser").line == next(
        number for number, row in enumerate(env.splitlines(), 1) if parser in row
    )


def test_variables_of_another_platform_than_the_images_are_kept_as_ignored() -> None:
    found = one(
        "services:\n  a:\n    image: 1.dkr.ecr.eu-west-1.amazonaws.com/vllm:0.20.0-gpu\n    environment:\n"
        "      SM_VLLM_MODEL: org/m\n      OPTION_REASONING_PARSER: qwen3\n"
    )
    assert found.reasoning_parser is None
    assert [(name, platform) for name, _, platform in found.ignored_env] == [("OPTION_REASONING_PARSER", "AWS LMI")]


@pytest.mark.parametrize(
    ("text", "path", "name"),
    [
        ("kind: Model\nmetadata: {name: k}\nspec: {url: 'hf://org/m', engine: VLLM, args: [--reasoning-parser=qwen3]}\n", "k.yaml", "Model/k"),
        (
            "kind: ConfigMap\nmetadata: {name: kaito}\ndata:\n  inference_config.yaml: |\n    vllm:\n"
            "      model: org/m\n      reasoning-parser: qwen3\n",
            "k.yaml",
            "ConfigMap/kaito",
        ),
        ("name: g\nhuggingface_repo_id: org/m\nbackend_parameters: ['--reasoning-parser=qwen3']\n", "g.yaml", "g"),
        ("models:\n  chat:\n    cmd: |\n      vllm serve org/m --port ${PORT}\n      --reasoning-parser qwen3\n", "s.yaml", "chat"),
        ("name: sky\nenvs: {MODEL: org/m}\nrun: |\n  source x\n  vllm serve $MODEL --reasoning-parser qwen3\n", "s.yaml", "sky"),
        ("anything:\n- args: [--model, org/m, --reasoning-parser, qwen3]\n", "a.yaml", "anything[0].args"),
        ("a: {b: 'python -m vllm.entrypoints.openai.api_server --model org/m --reasoning-parser qwen3'}\n", "a.yaml", "a.b"),
        ("kind: RayClusterFleet\nmetadata: {name: f}\nspec: {template: {spec: {headGroupSpec: {template: {spec: {containers:"
         " [{name: h, command: [sh, -c, 'ray start; vllm serve org/m --reasoning-parser qwen3']}]}}}}}}\n", "f.yaml", "RayClusterFleet/f/h"),
    ],
)  # fmt: skip
def test_other_platforms(text: str, path: str, name: str) -> None:
    found = one(text, path)
    assert (found.name, found.model, found.reasoning_parser) == (name, "org/m", "qwen3")


def test_vllms_recipes() -> None:
    found = one(
        "model:\n  model_id: org/m\n  min_vllm_version: 0.19.0\n  base_args: [--trust-remote-code]\n"
        "features:\n  reasoning: {args: [--reasoning-parser, qwen3]}\n  tool_calling: {args: [--tool-call-parser, x]}\n"
    )
    assert (found.model, found.reasoning_parser, found.tool_call_parser) == ("org/m", "qwen3", "x")
    assert found.min_version == Target("vllm", (0, 19, 0))


LOG = """(APIServer pid=1) INFO 11-03 05:51:44 [api_server.py] vLLM API server version 0.30.0
(APIServer pid=1) INFO 11-03 05:51:44 [utils.py] non-default args: {'model_tag': 'org/m', 'reasoning_parser': 'qwen3', \
'default_chat_template_kwargs': {'enable_thinking': False}, 'enable_auto_tool_choice': True, \
'structured_outputs_config': StructuredOutputsConfig(backend='auto', reasoning_parser='qwen3'), 'api_key': ['hunter2']}
"""


def test_the_start_up_log() -> None:
    found = one(LOG, "server.log")
    assert (found.model, found.reasoning_parser, version(found)) == ("org/m", "qwen3", "0.30.0")
    assert found.default_chat_template_kwargs == {"enable_thinking": False}
    assert found.enable_auto_tool_choice
    assert (found.json("structured-outputs-config") or {})["reasoning_parser"] == "qwen3"
    assert found.place("reasoning-parser").line == 2
    assert "api-key" not in found.flags


def test_a_log_of_two_starts_and_one_of_an_old_release() -> None:
    assert [server.target for server in servers(LOG + LOG.replace("0.30.0", "0.31.0"), "x.log")] == [
        Target("vllm", (0, 30, 0)),
        Target("vllm", (0, 31, 0)),
    ]
    old = one(
        "INFO api_server.py:585] vLLM API server version 0.6.3\nINFO api_server.py:586] args: Namespace(host=None, "
        "model='org/m', enable_reasoning=True, reasoning_parser='deepseek_r1', lora_modules=None)\n",
        "x.log",
    )
    assert (version(old), old.reasoning_parser, old.on("enable-reasoning")) == ("0.6.3", "deepseek_r1", True)


def test_a_process_and_a_container_that_run(tmp_path: Path) -> None:
    cmdline = tmp_path / "cmdline"
    cmdline.write_bytes(b"/usr/bin/python3\0/usr/local/bin/vllm\0serve\0org/m\0--reasoning-parser\0qwen3\0")
    (found,) = read_serve(str(cmdline))
    assert isinstance(found, ServeCommand)
    assert (found.model, found.reasoning_parser) == ("org/m", "qwen3")
    inspected = one(
        '[{"Name": "/chat", "Config": {"Image": "vllm/vllm-openai:v0.33.0", "Entrypoint": ["vllm", "serve"],'
        ' "Cmd": ["org/m", "--reasoning-parser", "qwen3"], "Env": ["VLLM_USE_V2_MODEL_RUNNER=0"]}}]',
        "inspect.json",
    )
    assert (inspected.name, inspected.runner, version(inspected)) == ("chat", "v1", "0.33.0")


def test_a_dockerfile() -> None:
    found = one(
        "ARG TAG=v0.30.0\nFROM vllm/vllm-openai:v0.30.0\nENV MODEL=org/m\n"
        'ENTRYPOINT ["vllm", "serve"]\nCMD ["org/m", \\\n  "--reasoning-parser", "qwen3"]\n',
        "Dockerfile",
    )
    assert (found.model, found.reasoning_parser, version(found)) == ("org/m", "qwen3", "0.30.0")
    assert found.place("reasoning-parser").line == 6


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (
            "args:\n{{- range .Values.args }}\n- {{ . }}\n{{- end }}\n",
            "t.yaml",
            "t.yaml:2: a Helm template.*helm template",
        ),
        (
            'resource "kubernetes_deployment" "x" {\n  command = ["vllm", "serve"]\n}\n',
            "m.tf",
            "Terraform.*terraform show",
        ),
        ('job "vllm" {\n  group "g" {}\n}\n', "v.nomad", "a Nomad job.*nomad job run"),
    ],
)
def test_what_must_be_rendered_first_names_the_pipe(text: str, path: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        servers_in(text, path=path)


def test_the_served_name_of_kserve_is_no_helm_template() -> None:
    found = one(
        "kind: ServingRuntime\nmetadata: {name: r}\nspec:\n  containers:\n  - name: c\n"
        "    command: [vllm, serve, /mnt/models]\n    args: ['--served-model-name={{.Name}}', --reasoning-parser=qwen3]\n"
    )
    assert found.reasoning_parser == "qwen3"


def test_a_folder_is_walked_and_its_manifests_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "kind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: c,"
        " image: 'vllm/vllm-openai:v0.30.0', command: [sh, /s/start.sh]}]}}}\n"
    )
    below = tmp_path / "b"
    below.mkdir()
    (below / "map.yaml").write_text(
        "kind: ConfigMap\nmetadata: {name: m}\ndata: {start.sh: 'vllm serve org/m --reasoning-parser qwen3'}\n"
    )
    (below / "run.sh").write_text("vllm serve org/n\n")
    (below / "broken.yaml").write_text("vllm: [\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.sh").write_text("vllm serve hidden\n")
    found, unread = read_folder(str(tmp_path))
    assert [(server.name, getattr(server, "model", None)) for server in found] == [
        ("Deployment/d/c", "org/m"),
        ("org/n", "org/n"),
    ]
    assert [Path(file.location.path).name for file in unread] == ["broken.yaml"]
