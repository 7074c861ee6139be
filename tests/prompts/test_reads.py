"""What a template reads, from its syntax tree."""

from __future__ import annotations

from typing import Any

import pytest

from reasonctl.prompts import reads


def kwargs_of(text: str) -> tuple[set[str], dict[str, tuple[Any, ...]]]:
    tree = reads.parse(text)
    names = reads.kwargs_read(tree, reads.declared(tree))
    return set(names), reads.compared_values(tree, names)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{% for m in messages %}{{ m.content }}{% endfor %}", set()),
        ("{% if enable_thinking is defined and enable_thinking is false %}x{% endif %}", {"enable_thinking"}),
        ("{% if not thinking is defined %}{% set thinking = false %}{% endif %}{{ thinking }}", {"thinking"}),
        ("{% set thinking = thinking | default(true) %}{{ thinking }}", {"thinking"}),
        # Set in one branch and read later: undeclared to Jinja, but the template's own.
        ("{% if messages %}{% set first = messages[0] %}{% endif %}{{ first }}", set()),
        ("{% for item in messages %}{{ item }}{% endfor %}{{ item }}", set()),
        ("{% macro show(x) %}{{ x }}{{ effort }}{% endmacro %}{{ show(tools) }}", {"effort"}),
        ("{{ outer() }}{% macro outer() %}x{% endmacro %}", set()),
        ("{{ bos_token }}{{ raise_exception('x') }}{{ strftime_now('%d') }}{{ namespace(a=1).a }}{{ null }}", set()),
        ("{{ chat_template_kwargs.enable_thinking }}{{ options['x'] }}", {"chat_template_kwargs", "options"}),
        ("{% generation %}{{ inside }}{% endgeneration %}{% for m in messages %}{% break %}{% endfor %}", {"inside"}),
    ],
)
def test_kwargs_the_template_reads(text: str, names: set[str]) -> None:
    assert kwargs_of(text)[0] == names


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{% if mode == 'on' %}a{% elif 'off' != mode %}b{% endif %}", {"mode": ("off", "on")}),
        ("{% if mode in ['low', 'high'] %}a{% endif %}", {"mode": ("high", "low")}),
        ("{% if mode | lower == 'on' %}a{% endif %}", {"mode": ("on",)}),
        ("{% if mode.lower() == 'on' %}a{% endif %}", {"mode": ("on",)}),
        ("{% set m = mode | default('x') %}{% if m == 'on' %}a{% endif %}", {"mode": ("on",)}),
        ("{% set m = mode if mode is defined else 'x' %}{% if m == 'on' %}a{% endif %}", {"mode": ("on",)}),
        ("{% if keep %}a{% endif %}", {"keep": (False, True)}),
        ("{% if x is defined and not keep %}a{% endif %}", {"keep": (False, True)}),
        ("{{ 'a' if keep else 'b' }}", {"keep": (False, True)}),
        ("{% if keep is true %}a{% endif %}", {"keep": (False, True)}),
        ("{% if budget == 0 or budget > 512 or budget == -1 %}a{% endif %}", {"budget": (-1, 0, 512)}),
        ("{% if mode is defined and mode is not none %}a{% endif %}", {}),
        ("{% if one == 1 and one == true %}a{% endif %}", {"one": (True, 1)}),
        ("{% if a == b %}a{% endif %}", {}),
    ],
)
def test_values_a_kwarg_is_compared_with(text: str, values: dict[str, tuple[Any, ...]]) -> None:
    got = kwargs_of(text)[1]
    assert got == values
    assert {name: [type(v) for v in each] for name, each in got.items()} == {
        name: [type(v) for v in each] for name, each in values.items()
    }


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("{% for m in messages %}{{ m.content }}{% endfor %}", False),
        ("{% for m in messages %}{% for c in m['content'] %}{{ c.text }}{% endfor %}{% endfor %}", True),
        ("{% for m in messages[1:] %}{% for c in m.content | list %}{{ c }}{% endfor %}{% endfor %}", True),
        ("{% set rest = messages %}{% for m in rest %}{% for c in m.content %}{{ c }}{% endfor %}{% endfor %}", True),
        ("{% set content = 'x' %}{% for c in content %}{{ c }}{% endfor %}", True),
        (
            "{% macro show(body) %}{% for c in body %}{{ c }}{% endfor %}{% endmacro %}"
            "{% for m in messages %}{{ show(m.content) }}{% endfor %}",
            True,
        ),
        (
            "{% macro show(body) %}{% for c in body %}{{ c }}{% endfor %}{% endmacro %}"
            "{% for m in messages %}{{ show(m.role) }}{% endfor %}",
            False,
        ),
        ("{% for m in messages %}{% for c in m.tool_calls %}{{ c }}{% endfor %}{% endfor %}", False),
    ],
)
def test_a_template_that_loops_over_content_gets_parts(text: str, parts: bool) -> None:
    assert reads.wants_parts(reads.parse(text)) is parts
