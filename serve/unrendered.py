"""Templates of manifests: recognised, and refused with the command that renders them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from ..errors import InputError

_FORMS = (
    (re.compile(r"\{\{-?\s*(?:\.Values|include|if|with|range|\$|toYaml|tpl|template|define|\.Release|\.Chart)"),
     "a Helm template", "helm template RELEASE CHART | reasonctl audit --serve -"),
    (re.compile(r"^\s*(?:resource|module|provider|variable|locals|data)\s+(?:\"[^\"]*\"\s*)*\{", re.MULTILINE),
     "Terraform", "terraform show -json PLAN | reasonctl audit --serve -"),
    (re.compile(r"^\s*job\s+\"[^\"]*\"\s*\{", re.MULTILINE),
     "a Nomad job", "nomad job run -output FILE | reasonctl audit --serve -"),
    (re.compile(r"\{[{%][-+]?\s*(?:lookup|hostvars|ansible_|item\b|for |if |set |vars\.)"),
     "an Ansible or Jinja template", "ansible all -m template ...  (render it, then reasonctl audit --serve RENDERED)"),
    (re.compile(r"(?:\bvllm[ \t]+serve|(?<![\w-])--(?!chat-template)[a-z][\w-]*)[ \t=\"'\[,]+\{\{[-+]?[ \t]*[A-Za-z_]|"
                r"\b(?:image|model|command|args)[\"']?[ \t]*[:=][^\n#]*(?<!\$)\{\{[-+]?[ \t]*[A-Za-z_]"),
     "an Ansible or Jinja template", "ansible all -m template ...  (render it, then reasonctl audit --serve RENDERED)"),
    (re.compile(r"^\s*\{\s*(?:config|pkgs|lib)\b[^}]*\}\s*:", re.MULTILINE),
     "a Nix expression", "nix eval --json .#FLAKE_ATTRIBUTE | reasonctl audit --serve -"),
)  # fmt: skip

_BY_SUFFIX = {
    ".nix": "a Nix expression",
    ".j2": "an Ansible or Jinja template",
    ".jinja2": "an Ansible or Jinja template",
    ".tpl": "a Helm template",
    ".gotmpl": "a Helm template",
}
"""Files that are templates whatever is in them."""


def must_be_rendered(text: str, path: str) -> None:
    """Raise InputError for a template that another tool turns into a manifest: the message has the pipe to use."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _BY_SUFFIX:
        what, pipe = next((name, pipe) for _, name, pipe in _FORMS if name == _BY_SUFFIX[suffix])
        raise InputError(f"{what}: nothing runs until it is rendered", source=path, line=1, mend=pipe)
    for pattern, what, pipe in _FORMS:
        match = pattern.search(text)
        if match is None:
            continue
        if what == "Terraform" and suffix not in (".tf", ".hcl", ".tofu", ""):
            continue
        if suffix in (".sh", ".bash", ".py", ".log", ".txt"):
            continue
        line = text.count("\n", 0, match.start()) + 1
        raise InputError(f"{what}: nothing runs until it is rendered", source=path, line=line, mend=pipe)
