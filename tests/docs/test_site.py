"""Links that the site's builder does not see, and pages that nobody would find. `make docs` checks the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

TOP = Path(__file__).resolve().parents[2]
SITE = yaml.safe_load((TOP / "mkdocs.yml").read_text("utf-8"))
LINK = re.compile(r"\]\((?P<path>[^)#\s:]*)(?:#(?P<anchor>[^)\s]+))?\)")


def named(nav: Any) -> Iterator[str]:
    """The pages of a navigation, however deep."""
    if isinstance(nav, str):
        yield nav
    for entry in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():
        yield from named(entry)


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_links_of_pages_beside_the_site_lead_somewhere(page: str) -> None:
    found = list(LINK.finditer((TOP / page).read_text("utf-8")))
    assert found or page != "README.md"
    for link in found:
        target = (TOP / link["path"]) if link["path"] else TOP / page
        assert target.exists(), link[0]


def test_every_page_is_in_the_navigation_once() -> None:
    pages = sorted(path.relative_to(TOP / "docs").as_posix() for path in (TOP / "docs").rglob("*.md"))
    assert sorted(named(SITE["nav"])) == pages


def test_the_site_fetches_nothing_from_elsewhere() -> None:
    assert SITE["theme"]["font"] is False
    assert not [name for name in (*SITE.get("extra_css", ()), *SITE.get("extra_javascript", ())) if "://" in name]
    assert SITE["strict"] is True
