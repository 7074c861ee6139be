"""Every server in what `--serve` names: a command line, a script, a manifest, a log; or a folder of such files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from ..budgets.document import Node, locator, named
from ..budgets.files import read_stdin, read_text
from ..budgets.json_text import read_json, read_json_values
from ..budgets.yaml_text import read_yaml_documents
from ..checks.finding import Location
from ..errors import InputError
from ..parsers.target import Target
from .command import ServeCommand, Server
from .commandline import launch, unbroken
from .compose import compose_servers, is_compose
from .container import Container, servers_of
from .dialects import as_shell, is_makefile
from .docker import dockerfile_servers, is_dockerfile
from .env_text import env_variables, is_env_text
from .generic import generic_servers
from .images import installed
from .inspected import inspected_servers
from .kubernetes import Cluster, is_manifest, kind_of, kubernetes_servers, production_stack_servers
from .nodes import at_key, keyed_flags
from .options import EVERY
from .platforms import chart_values, platform_servers
from .python_file import is_python, python_servers
from .shell import script_servers
from .startlog import is_start_log, log_servers
from .units import is_unit, unit_servers
from .unrendered import must_be_rendered
from .words import Word

FORMS = (
    "a `vllm serve` command line or script, docker run, compose, a Kubernetes or Helm values file, "
    "vLLM's --config YAML, a systemd unit or vLLM's start-up log"
)
SUFFIXES = frozenset(
    {
        ".yaml",
        ".yml",
        ".json",
        ".sh",
        ".bash",
        ".service",
        ".container",
        ".env",
        ".py",
        ".log",
        ".txt",
        ".toml",
        ".sbatch",
        ".slurm",
        ".ps1",
        ".psm1",
        ".bat",
        ".cmd",
        ".mk",
        ".nix",
        ".tf",
        ".hcl",
    }
)
"""Files of a folder that are looked into, besides those with one of `_NAMES`."""
_NAMES = ("dockerfile", "containerfile", ".env", "makefile", "gnumakefile")
_MENTIONED = re.compile(r"\bvllm\b|\bslimserve\b|^\s*--?[a-z]", re.IGNORECASE)
_LOOKS = re.compile(r"vllm|slimserve|reasoning[-_]parser", re.IGNORECASE)
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})
MAX_FILES = 20_000


@dataclass(frozen=True, slots=True)
class Unread:
    """A file of a folder that could not be read, or a server that could not be looked at, and why."""

    location: Location
    reason: str
    kind: Literal["file", "server"] = "file"


def read_serve(value: str, *, flag: str = "--serve", forgiving: bool = False) -> list[Server]:
    """Every server that a `--serve` value names.

    Args:
        value: a file, a command line, or `-` for stdin.
        flag: the flag the value came from: the path of findings about a command line that stands in no file.
        forgiving: a command that vLLM's argument parser would refuse is read as far as it goes.

    Raises:
        InputError: it cannot be read, or holds no server.
    """
    if value == "-":
        return _some(servers_in(read_stdin(), path="-", forgiving=forgiving), "-")
    path = Path(value)
    if is_file(path):
        return _some(servers_in(_text(path, value), path=value, forgiving=forgiving), value)
    if re.search(r"\s", value.strip()) and _MENTIONED.search(value):
        found = script_servers(value, locator(value, flag), launch)
        return _some(_as_asked([_with_config(server, Path()) for server in found], forgiving), flag)
    what = "this is a folder: give it as PATH" if is_folder(path) else "no such file, and no command line"
    source = flag if re.search(r"\s", value) else value  # a command line may hold a key, and is known to its writer
    raise InputError(what, source=source, mend=f"give {FORMS}")


def _as_asked(servers: list[Server], forgiving: bool) -> list[Server]:
    if not forgiving:
        return unbroken(servers)
    return [replace(each, forgiving=True) if isinstance(each, ServeCommand) else each for each in servers]


def read_folder(folder: str) -> tuple[list[Server], list[Unread]]:
    """Every server of the files below a folder, read forgivingly, and the files that could not be read.

    A folder's Kubernetes manifests are read together: a ConfigMap or a serving runtime may stand in another file.

    Raises:
        InputError: it holds more files than a project has.
    """
    servers: list[Server] = []
    unread: list[Unread] = []
    for path in files_below(Path(folder)):
        try:
            text = _text(path, str(path))
            if _LOOKS.search(text):
                servers += servers_in(text, path=str(path), beside=folder, forgiving=True)
        except InputError as error:
            unread.append(Unread(Location(str(path), error.line or 1, error.column or 1), error.message))
    return servers, unread


def files_below(folder: Path) -> Iterator[Path]:
    """The files that may hold a server, sorted; hidden folders and environments are passed by."""
    count = 0
    for root, files in sorted(walk(folder)):
        for name in files:
            path = root / name
            named = path.suffix.lower() in SUFFIXES or name.lower().startswith(_NAMES)
            if named and is_file(path):  # a pipe would be waited for
                count += 1
                if count > MAX_FILES:
                    raise InputError("more files than a project has", source=str(folder), mend="name a smaller folder")
                yield path


def walk(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Every folder below one, itself first, with the names of its files, sorted; hidden ones and environments apart."""
    import os

    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS)
        yield Path(root), sorted(files)


def servers_in(text: str, *, path: str, beside: str | None = None, forgiving: bool = False) -> list[Server]:
    """Every server in a file's text, none where it holds none; a `--config` file that is there counts below its flags.

    Args:
        text: the text.
        path: its file as reports name it, `-` for stdin.
        beside: the folder whose other manifests belong to it.
        forgiving: as for `read_serve`.

    Raises:
        InputError: it is of a form that must be rendered first, or is broken.
    """
    folder = Path(path).parent if path != "-" else None
    version = installed(text)
    found = [_with_config(server, folder) for server in _found(text, path, folder, beside)]
    return _as_asked([_installed(server, version) for server in found], forgiving)


def _installed(server: Server, version: Target | None) -> Server:
    """The server as the vLLM that its own file installs, where nothing else tells its version."""
    plain = isinstance(server, ServeCommand) and server.product == "vllm" and server.tag_of is None
    if version is None or not plain or not isinstance(server, ServeCommand) or server.target is not None:
        return server
    return replace(server, target=version)


def _with_config(server: Server, folder: Path | None) -> Server:
    """The server with the flags of the configuration file that its command line names."""
    if not isinstance(server, ServeCommand) or "config" not in server.flags:
        return server
    flag = server.flags["config"]
    places = [] if flag.dynamic or not flag.value else [Path(flag.value)]
    places += [folder / place.name for place in places if folder is not None]
    found = next((place for place in places if is_file(place)), None)
    if found is None:
        return replace(server, config_missing=flag.value or "")
    documents = _documents(read_text(found, shown=str(found)), str(found))
    return server.with_words_before(keyed_flags(documents[0])) if documents else server


def _found(text: str, path: str, folder: Path | None, beside: str | None) -> list[Server]:
    locate = locator(text, path)
    file = Path(path)
    if "\x00" in text:
        return _process(text, path)
    if is_start_log(text):
        return log_servers(text, locate)
    if is_python(path):
        return python_servers(text, path)
    must_be_rendered(text, path)
    if is_unit(text):
        return unit_servers(text, locate, name=file.stem, folder=folder)
    if is_dockerfile(text):
        return dockerfile_servers(text, locate, file.parent.name or file.name)
    if is_makefile(file.name):
        return script_servers(*as_shell(text, path, locate), launch)
    if is_env_text(text, named=".env" in (file.suffix, file.name[:4])):
        return servers_of(Container(file.name, locate(0), env=env_variables(text, locate)))
    if _is_document(text, path):
        return _in_documents(_documents(text, path), folder, beside)
    script, places = as_shell(text, path, locate)
    return script_servers(script, places, launch)


def _in_documents(documents: list[Node], folder: Path | None, beside: str | None) -> list[Server]:
    found: list[Server] = []
    manifests = [document for document in documents if is_manifest(document)]
    if manifests:
        others = _manifests_beside(beside, manifests) if beside is not None else []
        cluster = Cluster((*manifests, *others))
        found += kubernetes_servers(cluster, of=manifests)
        for manifest in manifests:
            found += platform_servers(manifest, folder)
            found += _in_documents(list(chart_values(manifest)), folder, None)
    for document in documents:
        if is_manifest(document):
            continue
        own = inspected_servers(document)
        if not own and is_compose(document):
            own = compose_servers(document, folder)
        if not own and at_key(document, "servingEngineSpec") is not None:
            own = production_stack_servers(document)
        if not own:
            own = platform_servers(document, folder)
        if not own and is_config(document, sure=beside is not None):
            own = config_servers(document)
        found += own or generic_servers(document)
    looked_up = ("ConfigMap", "Secret") if beside is not None else ()
    rest = [manifest for manifest in manifests if kind_of(manifest) not in looked_up]
    return found or [server for manifest in rest for server in generic_servers(manifest)]


def _manifests_beside(folder: str, own: list[Node]) -> list[Node]:
    """ConfigMaps and serving runtimes of the other files of a folder."""
    paths = {node.location.path for node in own}
    found: list[Node] = []
    for path in files_below(Path(folder)):
        if path.suffix.lower() not in (".yaml", ".yml") or str(path) in paths:
            continue
        try:
            text = read_text(path, shown=str(path))
            if re.search(r"^kind:\s*(ConfigMap|ServingRuntime|ClusterServingRuntime)", text, re.MULTILINE):
                found += [node for node in _documents(text, str(path)) if is_manifest(node)]
        except InputError:
            continue
    return found


_OPTIONS = frozenset(EVERY)
CONFIG_KEYS = frozenset(
    {"model", "reasoning-parser", "reasoning_parser", "served-model-name", "served_model_name", "max-model-len",
     "max_model_len", "tool-call-parser", "tool_call_parser", "chat-template", "chat_template", "tensor-parallel-size",
     "tensor_parallel_size", "gpu-memory-utilization", "gpu_memory_utilization", "default-chat-template-kwargs",
     "default_chat_template_kwargs", "override-generation-config", "override_generation_config", "reasoning-config",
     "reasoning_config", "enable-auto-tool-choice", "enable_auto_tool_choice", "model_tag", "dtype"}
)  # fmt: skip
"""Keys by which a vLLM `--config` file is known."""


_FOREIGN = frozenset(
    {"kind", "services", "apiVersion", "spec", "architectures", "model_type", "chat_template_jinja",
     "messages", "prompt", "input", "tasks", "model_args", "datasets", "dataset", "trainer"}
)  # fmt: skip
"""Keys of other files that name a model: manifests, models, requests, evaluations, trainings."""
_ANYBODYS = frozenset({"model", "dtype", "seed", "max-model-len", "revision", "tokenizer", "quantization", "model-tag"})
"""Flags that training and evaluation write under the same names."""


def is_config(node: Node, *, sure: bool = False) -> bool:
    """A vLLM `--config` file: a flat mapping of flags, some of them known and none of another world.

    Args:
        node: the document.
        sure: nobody said that it is one: then most of its keys are flags, and one of them is of a server alone.
    """
    keys = {entry.key for entry in node.entries or ()}
    if not keys & CONFIG_KEYS or keys & _FOREIGN:
        return False
    names = {key.replace("_", "-").partition(".")[0].lstrip("-") for key in keys}
    known = {name for name in names if name in _OPTIONS}
    return not sure or (len(known) * 2 > len(names) and bool(known - _ANYBODYS))


def config_servers(node: Node) -> list[Server]:
    """The server of a vLLM `--config` file. It wins over nothing: what a command line gives besides wins over it."""
    return servers_of(Container("vllm", node.location, flags=keyed_flags(node), entrypoint=_serve(node)))


def _serve(node: Node) -> tuple[Word, ...]:
    return tuple(Word(text, tuple(range(len(text) + 1)), lambda _: node.location) for text in ("vllm", "serve"))


def _is_document(text: str, path: str) -> bool:
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in (".yaml", ".yml", ".json"):
        return True
    if suffix in (".ps1", ".psm1", ".bat", ".cmd"):
        return False
    test = suffix in (".sh", ".bash", ".sbatch", ".slurm") and re.match(r"\s*\[\[?\s", text) is not None
    if test:  # `[ -n "$A" ] && ...` in a script's first line is no list
        return False
    if suffix in (".sh", ".bash", ".sbatch", ".slurm", ".txt") and not text.lstrip().startswith(("{", "[")):
        return False
    rows = [row for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    first = rows[0] if rows else ""
    return re.match(r"---\s*$|[\w.-]+:(?:\s|$)|[{\[]", first) is not None


def _documents(text: str, path: str) -> list[Node]:
    locate = locator(text, path)
    if path.endswith(".json") or text.lstrip()[:1] in ("{", "["):
        try:
            return read_json_values(text, locate)
        except InputError:
            if path.endswith(".json"):
                return [read_json(text, locate)]
    return read_yaml_documents(text, locate)


def _process(text: str, path: str) -> list[Server]:
    """`/proc/PID/cmdline`: words that end with a NUL each."""
    place = Location(path, 1, 1)
    words = [Word(part, tuple(range(len(part) + 1)), lambda _: place) for part in text.split("\x00") if part]
    return launch(words, {}) if words else []


def _text(path: Path, shown: str) -> str:
    """A file's text; a process's command line is no binary file."""
    try:
        return read_text(path, shown=shown)
    except InputError as error:
        if "binary" not in error.message:
            raise
        data = path.read_bytes()
        if len(data) < 1 << 20 and b"\n" not in data.rstrip(b"\x00\n") and b"vllm" in data:
            return data.decode("utf-8", errors="replace")
        raise


def _some(servers: list[Server], source: str) -> list[Server]:
    if not servers:
        raise InputError("no server in it", source=named(source), mend=f"give {FORMS}")
    return servers


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a command line can be too long for a path
        return False


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
