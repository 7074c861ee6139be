"""Servers in Kubernetes manifests: anything that holds containers, and the resources that write them otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..budgets.document import Node
from .command import ServeCommand, Server
from .container import Container, servers_of
from .nodes import at_key, environment, items_of, keyed_flags, text_of, word_of, words_of
from .words import Word, split_words, word_at
from .wrappers import Variable


@dataclass(frozen=True)
class Cluster:
    """The manifests that are looked at together: ConfigMaps and serving runtimes are looked up in them by name."""

    documents: tuple[Node, ...]

    def named(self, kind: str, name: str | None) -> Node | None:
        """The manifest of this kind and name."""
        return next((doc for doc in self.documents if kind_of(doc) == kind and name_of(doc) == name), None)


def kubernetes_servers(cluster: Cluster, *, of: Sequence[Node] | None = None) -> list[Server]:
    """Every server of these manifests, in their order. `of` are those meant; in the others things are looked up."""
    found: list[Server] = []
    for document in cluster.documents if of is None else of:
        for manifest in _manifests(document):
            found += _READERS.get(kind_of(manifest) or "", _containers)(manifest, cluster)
    return found


def kind_of(node: Node) -> str | None:
    return text_of(at_key(node, "kind"))


def name_of(node: Node) -> str | None:
    return text_of(at_key(node, "metadata", "name"))


def is_manifest(node: Node) -> bool:
    """A Kubernetes object, or a patch of one."""
    return node.entries is not None and at_key(node, "kind") is not None


def _manifests(document: Node) -> Iterator[Node]:
    if kind_of(document) in ("List", "PodList", "DeploymentList") or (
        at_key(document, "items") is not None and kind_of(document) is not None
    ):
        for item in items_of(at_key(document, "items")):
            yield from _manifests(item)
    else:
        yield document


def _title(manifest: Node, last: str | None) -> str:
    parts = [part for part in (kind_of(manifest), name_of(manifest), last) if part]
    return "/".join(dict.fromkeys(parts))


def _containers(manifest: Node, cluster: Cluster) -> list[Server]:
    """What every container of every pod template in it starts."""
    found: list[Server] = []
    for path, holder in _pods(manifest, ()):
        role = next(
            (part.removesuffix("Template") for part in path if part in ("leaderTemplate", "workerTemplate")), None
        )
        if "prefill" in path:
            role = "prefill"
        for item in items_of(at_key(holder, "containers")):
            name = text_of(at_key(item, "name"))
            title = _title(manifest, "/".join(part for part in (role, name) if part))
            found += servers_of(replace(_container(item, title, cluster), prefill=role == "prefill"))
        main = at_key(holder, "mainContainer")
        if main is not None:
            found += servers_of(_container(main, _title(manifest, _component(path)), cluster))
    return found


def _component(path: Sequence[str]) -> str | None:
    return path[path.index("services") + 1] if "services" in path[:-1] else None


def _pods(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Every mapping that holds containers, with the keys that lead to it."""
    if at_key(node, "containers") is not None or at_key(node, "mainContainer") is not None:
        yield path, node
    for entry in node.entries or ():
        if entry.key not in ("containers", "initContainers", "status", "metadata", "mainContainer"):
            yield from _pods(entry.value, (*path, entry.key))
    for index, item in enumerate(node.items or ()):
        yield from _pods(item, (*path, str(index)))


def _container(item: Node, title: str, cluster: Cluster) -> Container:
    image = at_key(item, "image")
    command = at_key(item, "command")
    env = {**_env_from(item, cluster), **environment(at_key(item, "env"))}
    words = words_of(command)
    script = _mounted_script((*words, *words_of(at_key(item, "args"))), cluster)
    return Container(
        name=title,
        location=item.location,
        image=text_of(image),
        image_at=image.location if image is not None else None,
        entrypoint=script if script is not None else words if command is not None else None,
        args=() if script is not None else words_of(at_key(item, "args")),
        env=env,
    )


def _env_from(item: Node, cluster: Cluster) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    for source in items_of(at_key(item, "envFrom")):
        config = cluster.named("ConfigMap", text_of(at_key(source, "configMapRef", "name")))
        data = at_key(config, "data") if config is not None else None
        prefix = text_of(at_key(source, "prefix")) or ""
        found |= {f"{prefix}{name}": variable for name, variable in environment(data).items()}
    return found


def _mounted_script(words: Sequence[Word], cluster: Cluster) -> tuple[Word, ...] | None:
    """The script of a ConfigMap that these words run, cut into words; None where they run none."""
    names = {word.text.rpartition("/")[2] for word in words if "/" in word.text or word.text.endswith(".sh")}
    for document in cluster.documents:
        if kind_of(document) != "ConfigMap":
            continue
        for entry in (at_key(document, "data") or document).entries or ():
            if entry.key in names and isinstance(entry.value.scalar, str):
                return tuple(split_words(entry.value.scalar, entry.value.at))
    return None


def model_word(node: Node | None) -> Word | None:
    """A model as the word that names it; `hf://org/m` is the hub's `org/m`, other stores keep their scheme."""
    word = word_of(node) if node is not None else None
    if word is None or not word.text.startswith("hf://"):
        return word
    return replace(word, text=word.text[5:], offsets=word.offsets[5:])


def _llm_inference_service(manifest: Node, cluster: Cluster) -> list[Server]:
    """KServe's LLMInferenceService: the model under `spec.model`, flags in an environment variable or as arguments."""
    model = model_word(at_key(manifest, "spec", "model", "uri"))
    found: list[Server] = []
    for role, holder in (
        (None, at_key(manifest, "spec", "template")),
        ("worker", at_key(manifest, "spec", "worker")),
        ("prefill", at_key(manifest, "spec", "prefill", "template")),
    ):
        for item in items_of(at_key(holder, "containers")):
            name = text_of(at_key(item, "name"))
            if name not in (None, "main") and role != "worker":
                continue
            container = _container(item, _title(manifest, role), cluster)
            found += servers_of(replace(container, model=container.model or model, prefill=role == "prefill"))
    plain = at_key(manifest, "spec", "template") is None and at_key(manifest, "spec", "baseRefs") is None
    if not found and plain and model is not None and kind_of(manifest) == "LLMInferenceService":
        found += servers_of(Container(_title(manifest, None), manifest.location, model=model))
    return found


def _inference_service(manifest: Node, cluster: Cluster) -> list[Server]:
    """KServe's InferenceService: its arguments stand behind those of the serving runtime it names."""
    spec = at_key(manifest, "spec", "predictor", "model")
    if spec is None:
        return _containers(manifest, cluster)
    runtime = text_of(at_key(spec, "runtime"))
    base = cluster.named("ServingRuntime", runtime) or cluster.named("ClusterServingRuntime", runtime)
    holders = items_of(at_key(base, "spec", "containers")) if base is not None else ()
    own = _container(spec, _title(manifest, None), cluster)
    uri = model_word(at_key(spec, "storageUri"))
    if not holders:
        looks = "vllm" in (runtime or "").lower() or text_of(at_key(spec, "modelFormat", "name")) == "vLLM"
        return servers_of(replace(own, model=uri if looks or own.args else None))
    found: list[Server] = []
    for item in holders:
        below = _container(item, own.name, cluster)
        args = tuple(_named_after(word, manifest) for word in (*below.args, *own.args))
        joined = replace(below, location=own.location, args=args, env={**below.env, **own.env}, model=uri)
        found += servers_of(joined)
    stored = text_of(at_key(spec, "storageUri")) or ""
    return [_stored(server, uri) for server in found] if stored.startswith("hf://") else found


MOUNTED = "/mnt/models"
"""Where KServe puts what `storageUri` names."""


def _stored(server: Server, uri: Word | None) -> Server:
    """The server with the hub's model that lies where KServe puts it."""
    mounted = isinstance(server, ServeCommand) and server.model == MOUNTED and uri is not None
    return replace(server, model=uri.text) if mounted and isinstance(server, ServeCommand) and uri else server


def _named_after(word: Word, manifest: Node) -> Word:
    """KServe's own template: `{{.Name}}` is the service's name."""
    name = name_of(manifest)
    if name is None or "{{.Name}}" not in word.text:
        return word
    return word_at(word.text.replace("{{.Name}}", name), word.location, dynamic=word.dynamic)


def _serving_runtime(manifest: Node, cluster: Cluster) -> list[Server]:
    """A serving runtime by itself: a server only where no InferenceService in the same files uses it."""
    users = [
        doc
        for doc in cluster.documents
        if kind_of(doc) == "InferenceService"
        and text_of(at_key(doc, "spec", "predictor", "model", "runtime")) == name_of(manifest)
    ]
    return [] if users else _containers(manifest, cluster)


def _vllm_runtime(manifest: Node, cluster: Cluster) -> list[Server]:
    """The production stack operator's VLLMRuntime."""
    spec = at_key(manifest, "spec")
    config = at_key(spec, "vllmConfig")
    image = at_key(spec, "deploymentConfig", "image")
    registry, name = text_of(at_key(image, "registry")), text_of(at_key(image, "name"))
    reference = f"{registry}/{name}" if registry and name else name
    return servers_of(
        Container(
            _title(manifest, None),
            manifest.location,
            image=reference,
            image_at=image.location if image is not None else None,
            model=model_word(at_key(spec, "model", "modelURL")),
            flags=(
                *_tool_flags(at_key(spec, "model")),
                *keyed_flags(config, camel=True, leave=VLLM_CONFIG_ONLY | {"env"}),
                *words_of(at_key(config, "extraArgs")),
            ),
            env=environment(at_key(config, "env")),
        )
    )


VLLM_CONFIG_ONLY = frozenset(
    {"extraArgs", "v1", "vllmV1", "enablePrefixCaching", "enableChunkedPrefill", "port", "env"}
)
"""Keys of the production stack's `vllmConfig` that are no flags of their own name, or none that matters here."""


def _tool_flags(spec: Node | None) -> tuple[Word, ...]:
    """`enableTool`, `toolCallParser` and `chatTemplate` of the production stack."""
    found: list[Word] = []
    for key, flag in (
        ("enableTool", "enable-auto-tool-choice"),
        ("toolCallParser", "tool-call-parser"),
        ("chatTemplate", "chat-template"),
    ):
        entry = spec.get(key) if spec is not None and spec.entries is not None else None
        if entry is not None and entry.value.scalar not in (False, None, ""):
            renamed = Node(entry.location, entries=(replace(entry, key=flag),))
            found += keyed_flags(renamed)
    return tuple(found)


def _kubeai_model(manifest: Node, cluster: Cluster) -> list[Server]:
    """KubeAI's Model: `spec.url`, `spec.engine`, `spec.args`."""
    spec = at_key(manifest, "spec")
    engine = text_of(at_key(spec, "engine"))
    if at_key(spec, "url") is None or engine is None or engine.lower() != "vllm":
        return []
    return servers_of(
        Container(
            _title(manifest, None),
            manifest.location,
            image=text_of(at_key(spec, "image")),
            model=model_word(at_key(spec, "url")),
            args=words_of(at_key(spec, "args")),
            env=environment(at_key(spec, "env")),
        )
    )


def _nothing(manifest: Node, cluster: Cluster) -> list[Server]:
    """What holds no containers, whatever it holds else."""
    return []


_READERS: Mapping[str, Callable[[Node, Cluster], list[Server]]] = {
    "LLMInferenceService": _llm_inference_service,
    "LLMInferenceServiceConfig": _llm_inference_service,
    "InferenceService": _inference_service,
    "ServingRuntime": _serving_runtime,
    "ClusterServingRuntime": _serving_runtime,
    "VLLMRuntime": _vllm_runtime,
    "Model": _kubeai_model,
    "ConfigMap": _nothing,
    "Secret": _nothing,
}


def production_stack_servers(node: Node) -> list[Server]:
    """The values of the vLLM production stack's Helm chart: `servingEngineSpec.modelSpec[]`."""
    found: list[Server] = []
    for item in items_of(at_key(node, "servingEngineSpec", "modelSpec")):
        repository, tag = text_of(at_key(item, "repository")), text_of(at_key(item, "tag"))
        image = f"{repository}:{tag}" if repository and tag else repository
        config = at_key(item, "vllmConfig")
        at = at_key(item, "tag") or at_key(item, "repository")
        found += servers_of(
            Container(
                text_of(at_key(item, "name")) or "servingEngine",
                item.location,
                image=image,
                image_at=at.location if at is not None else None,
                model=model_word(at_key(item, "modelURL")),
                flags=(
                    *_tool_flags(item),
                    *keyed_flags(config, camel=True, leave=VLLM_CONFIG_ONLY),
                    *words_of(at_key(config, "extraArgs")),
                ),
                env=environment(at_key(item, "env")),
            )
        )
    return found
