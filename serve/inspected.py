"""What really runs, as the platforms' own tools print it: `docker inspect`. (`kubectl get -o json` is a manifest.)"""

from __future__ import annotations

from ..budgets.document import Node
from .command import Server
from .container import Container, servers_of
from .nodes import at_key, environment, items_of, text_of, words_of


def inspected_servers(node: Node) -> list[Server]:
    """The servers of `docker inspect` (or `podman inspect`) output; none where it is none."""
    found: list[Server] = []
    for item in items_of(node) or (node,):
        config = at_key(item, "Config")
        if config is None or (at_key(config, "Cmd") is None and at_key(config, "Entrypoint") is None):
            continue
        image = at_key(config, "Image")
        entrypoint = at_key(config, "Entrypoint")
        name = (text_of(at_key(item, "Name")) or "container").lstrip("/")
        found += servers_of(
            Container(
                name,
                item.location,
                image=text_of(image),
                image_at=image.location if image is not None else None,
                entrypoint=words_of(entrypoint) if entrypoint is not None else None,
                args=words_of(at_key(config, "Cmd")),
                env=environment(at_key(config, "Env")),
            )
        )
    return found
