"""Servers in the files of other platforms: Ray Serve, Kaito, GPUStack, llama-swap, SkyPilot, vLLM's recipes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..budgets.document import Entry, Node, locator
from ..budgets.files import read_text
from ..budgets.yaml_text import read_yaml
from ..errors import InputError
from ..parsers.target import Target
from .command import ServeCommand, Server
from .container import Container, servers_of
from .kubernetes import kind_of, model_word, name_of
from .nodes import at_key, environment, items_of, keyed_flags, script_words, text_of, word_of, words_of


def platform_servers(node: Node, folder: Path | None) -> list[Server]:
    """The servers of a document that one of these platforms reads; none where it is no such document."""
    found = [*_ray(node, folder), *_in_text(node, folder)]
    for reader in (_recipe, _gpustack, _llama_swap, _skypilot):
        found += reader(node)
    return found


def nested(node: Node) -> Node | None:
    """The YAML document that stands in a text, its places those of the file around it."""
    if not isinstance(node.scalar, str):
        return None
    try:
        return read_yaml(node.scalar, node.at)
    except InputError:
        return None


def _ray(node: Node, folder: Path | None) -> Iterator[Server]:
    """Ray Serve LLM: `applications[].args.llm_configs[]`, each with `engine_kwargs`."""
    for application in items_of(at_key(node, "applications")):
        title = text_of(at_key(application, "name"))
        for config in items_of(at_key(application, "args", "llm_configs")):
            holder = config
            if isinstance(config.scalar, str) and folder is not None and (folder / config.scalar).is_file():
                path = folder / config.scalar
                text = read_text(path, shown=str(path))
                holder = read_yaml(text, locator(text, str(path)))
            yield from _ray_config(holder, title)
    if at_key(node, "model_loading_config") is not None:
        yield from _ray_config(node, None)


def _ray_config(config: Node, title: str | None) -> list[Server]:
    model_id = at_key(config, "model_loading_config", "model_id")
    source = at_key(config, "model_loading_config", "model_source")
    where = source if source is not None and source.is_scalar else None
    name = text_of(model_id) or title or "llm"
    return servers_of(
        Container(
            name,
            config.location,
            model=model_word(where or model_id),
            flags=keyed_flags(at_key(config, "engine_kwargs"), leave=frozenset({"model"})),
            env=environment(at_key(config, "runtime_env", "env_vars")),
        )
    )


def _in_text(node: Node, folder: Path | None) -> Iterator[Server]:
    """YAML in a string: a RayService's `serveConfigV2`, Kaito's `inference_config.yaml`."""
    config = at_key(node, "spec", "serveConfigV2")
    inner = nested(config) if config is not None else None
    if inner is not None:
        yield from _ray(inner, folder)
    for entry in (at_key(node, "data") or node).entries or ():
        inner = nested(entry.value) if kind_of(node) == "ConfigMap" and entry.key.endswith((".yaml", ".yml")) else None
        flags = at_key(inner, "vllm") if inner is not None else None
        if flags is not None and flags.entries is not None:
            title = f"ConfigMap/{name_of(node) or entry.key}"
            yield from servers_of(
                Container(
                    title,
                    flags.location,
                    flags=keyed_flags(flags, leave=frozenset({"model"})),
                    model=model_word(at_key(flags, "model")),
                )
            )


_VALUES = (
    ("spec", "source", "helm", "values"),
    ("spec", "source", "helm", "valuesObject"),
    ("spec", "values"),
    ("spec", "valuesContent"),
)
"""Where Argo CD's Application, Flux's HelmRelease and k3s's HelmChart keep a chart's values."""


def chart_values(node: Node) -> Iterator[Node]:
    """The values that a manifest hands to a Helm chart: a mapping, or YAML in a text."""
    spec = at_key(node, "spec")
    holders = [node, *(Node(i.location, entries=(Entry("spec", i.location, _source(i)),)) for i in _sources(spec))]
    for holder in holders:
        for path in _VALUES:
            found = at_key(holder, *path)
            inner = nested(found) if found is not None and found.is_scalar else found
            if inner is not None and inner.entries is not None:
                yield inner


def _sources(spec: Node | None) -> tuple[Node, ...]:
    """Several sources of one Application."""
    return items_of(at_key(spec, "sources"))


def _source(item: Node) -> Node:
    return Node(item.location, entries=(Entry("source", item.location, item),))


def _recipe(node: Node) -> list[Server]:
    """vLLM's recipes: `model.base_args` and the arguments of the features that concern reasoning and tools."""
    model = at_key(node, "model", "model_id") or at_key(node, "model_id")
    base = at_key(node, "model", "base_args") or at_key(node, "base_args")
    features = at_key(node, "features") or at_key(node, "model", "features")
    if model is None or (base is None and features is None):
        return []
    args = [
        *words_of(base),
        *(
            word
            for entry in (features.entries or () if features is not None else ())
            if entry.key in ("reasoning", "tool_calling")
            for word in words_of(at_key(entry.value, "args"))
        ),
    ]
    found = servers_of(Container(text_of(model) or "recipe", model.location, model=word_of(model), args=tuple(args)))
    least = text_of(at_key(node, "model", "min_vllm_version") or at_key(node, "min_vllm_version"))
    return [_at_least(server, least) for server in found]


def _at_least(server: Server, least: str | None) -> Server:
    """A recipe names the oldest version it runs on: what is older than the models here is the version to judge by."""
    parts = (least or "").removeprefix("v").split(".")
    if not isinstance(server, ServeCommand) or not all(part.isdigit() for part in parts[:2]) or len(parts) < 2:
        return server
    return replace(server, min_version=Target("vllm", (int(parts[0]), int(parts[1]), int((*parts, "0")[2]))))


def _gpustack(node: Node) -> list[Server]:
    """GPUStack: `backend_parameters` beside the model's source, of one model or of a list of them."""
    if node.items is not None:
        return [server for item in node.items for server in _gpustack(item)]
    parameters = at_key(node, "backend_parameters")
    if parameters is None:
        return []
    source = next(
        (
            at_key(node, key)
            for key in ("huggingface_repo_id", "model_scope_model_id", "local_path")
            if at_key(node, key) is not None
        ),
        None,
    )
    name = text_of(at_key(node, "name")) or "gpustack"
    return servers_of(Container(name, node.location, model=model_word(source), args=words_of(parameters)))


def _llama_swap(node: Node) -> list[Server]:
    """llama-swap: `models.X.cmd`; its macros `${NAME}` are known from `macros`, `${PORT}` never is."""
    found: list[Server] = []
    for entry in (at_key(node, "models") or node).entries or ():
        command = at_key(entry.value, "cmd")
        if command is None or not isinstance(command.scalar, str):
            continue
        found += servers_of(
            Container(
                entry.key,
                entry.location,
                entrypoint=words_of(command),
                env={**environment(at_key(node, "macros")), **environment(at_key(entry.value, "env"))},
            )
        )
    return found


def _skypilot(node: Node) -> list[Server]:
    """SkyPilot: the script under `run`, with the variables under `envs`."""
    run = at_key(node, "run")
    if run is None or not isinstance(run.scalar, str) or "vllm" not in run.scalar:
        return []
    name = text_of(at_key(node, "name")) or "sky"
    env = environment(at_key(node, "envs"))
    return servers_of(Container(name, run.location, entrypoint=script_words(run), env=env))
