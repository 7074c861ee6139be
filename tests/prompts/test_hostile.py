"""Templates that loop, eat memory, dig for the interpreter or kill their process, and what happens to the processes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from reasonctl.prompts.model import LONE_TEMPLATE_TOKENS, Model, Template
from reasonctl.prompts.render import Limits, Renderer, RenderError, RenderRequest
from reasonctl.prompts.survey import survey

QUICK = Limits(render_seconds=0.5, template_seconds=1.0)
SMALL = Limits(memory_bytes=256 << 20, output_chars=10_000)
HELLO = RenderRequest([{"role": "user", "content": "hello"}])
FOREVER = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
DOUBLING = "{% set n = namespace(s='x') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}"


def errors(text: str, count: int = 2, limits: Limits = SMALL) -> list[RenderError]:
    with Renderer(Template(text, "x"), limits=limits) as renderer:
        results = renderer.render_all([HELLO] * count)
    assert all(result.text is None for result in results)
    return [result.error for result in results if result.error is not None]


def test_an_endless_loop_costs_one_time_out_and_the_rest_is_unseen() -> None:
    assert [error.kind for error in errors(FOREVER, 3, QUICK)] == ["timeout", "unseen", "unseen"]


def test_the_total_of_a_template_is_limited_too() -> None:
    slow = "{% for a in range(99999) %}{% for b in range(12) %}{% endfor %}{% endfor %}"
    limits = Limits(render_seconds=60.0, template_seconds=0.5)
    with Renderer(Template(slow, "x"), limits=limits) as renderer:
        kinds = [result.error.kind if result.error else "ok" for result in renderer.render_all([HELLO] * 200)]
    assert kinds.count("timeout") == 1
    assert set(kinds[kinds.index("timeout") + 1 :]) == {"unseen"}


@pytest.mark.parametrize("text", [DOUBLING, "{{ 'x' * 99999999999 }}", "{{ '%09999999999d' % 1 }}"])
def test_a_memory_bomb(text: str) -> None:
    assert [error.kind for error in errors(text, limits=Limits())] == ["memory", "unseen"]


def test_a_bomb_that_goes_off_while_compiling() -> None:
    # Jinja folds the constant when it compiles, long before anything is rendered.
    assert {error.kind for error in errors("{{ 'x' * 300000000 }}")} <= {"memory", "unseen"}


def test_too_long_a_prompt_is_an_error_of_that_rendering_only() -> None:
    with Renderer(Template("{{ 'x' * (20000 if long else 5) }}", "x"), limits=SMALL) as renderer:
        long, short = renderer.render_all([RenderRequest(HELLO.messages, kwargs={"long": True}), HELLO])
    assert long.error is not None
    assert long.error.kind == "output"
    assert short.text == "xxxxx"


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages.append.__self__ }}",
        "{{ '{0.__class__.__mro__}'.format(1) }}",
        "{{ messages.append(1) }}",
        "{{ (messages | map(attribute='__class__') | list)[0].mro() }}",
    ],
)
def test_a_sandbox_escape_is_refused(text: str) -> None:
    first, second = errors(text)
    assert (first.kind, second.kind) in {("refused", "refused"), ("raised", "raised")}
    assert first.line == 1


def test_endless_recursion() -> None:
    first, second = errors("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")
    assert (first.kind, second.kind) == ("raised", "raised")
    assert first.message.startswith("RecursionError")


@pytest.mark.parametrize("text", ["{{ " + "(" * 50000 + "1" + ")" * 50000 + " }}", "{% if 1 %}" * 5000])
def test_a_template_nested_out_of_reach(text: str) -> None:
    assert {error.kind for error in errors(text)} <= {"raised", "crashed", "unseen"}


def test_errors_point_at_the_line() -> None:
    (error,) = errors("one\n{{ raise_exception('not like this') }}", 1)
    assert (error.message, error.line, error.by_template) == ("not like this", 2, True)
    (error,) = errors("one\ntwo\n{% if %}", 1)
    assert (error.message[:19], error.line, error.by_template) == ("TemplateSyntaxError", 3, False)
    (error,) = errors("one\n{{ nothing.at.all }}", 1)
    assert (error.message, error.line) == ("UndefinedError: 'nothing' is undefined", 2)


def test_the_next_template_is_rendered_after_a_hostile_one() -> None:
    errors(FOREVER, 1, QUICK)
    with Renderer(Template("{{ messages[0].content }}", "x")) as renderer:
        assert renderer.render(HELLO).text == "hello"


def test_one_template_cannot_change_another() -> None:
    with (
        Renderer(Template("{% set ns = namespace(x=1) %}{{ dict(a=1) }}", "x")) as one,
        Renderer(Template("{{ ns is defined }}", "y")) as two,
    ):
        assert one.render(HELLO).text == "{'a': 1}"
        assert two.render(HELLO).text == "False"


def test_a_survey_of_a_hostile_template_is_all_errors() -> None:
    template = Template(FOREVER, "x")
    model = Model(source="x", kind="template", path=None, template=template, special_tokens=LONE_TEMPLATE_TOKENS)
    found = survey(model, limits=QUICK)
    assert {state.state for state in found.states} == {"error"}
    assert {state.error_kind for state in found.states} == {"timeout", "unseen"}


def test_unreadable_kwargs_never_reach_the_rendering_itself() -> None:
    request = RenderRequest(HELLO.messages, kwargs={"chat_template": "evil", "conversations": [], "x": "ok"})
    with Renderer(Template("{{ x }}{{ chat_template }}{{ conversations }}", "x")) as renderer:
        assert renderer.render(request).text == "ok"


PARENT = """
import sys
from reasonctl.prompts.model import Template
from reasonctl.prompts.render import Limits, RenderRequest, Renderer
from reasonctl.prompts import sandbox
renderer = Renderer(Template(sys.argv[1], "x"), limits=Limits(render_seconds=600, template_seconds=600))
print(sandbox._child()._process.pid, renderer._worker._pid, flush=True)
renderer.render(RenderRequest([{"role": "user", "content": "x"}]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_process_is_left_behind(number: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, FOREVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    handles = [os.pidfd_open(pid) for pid in pids]
    parent.send_signal(number)
    parent.wait(30)
    for handle in handles:
        ended, _, _ = select.select([handle], [], [], 60)
        os.close(handle)
        assert ended
    parent.stdout.close()


def test_a_dead_child_is_replaced() -> None:
    from reasonctl.prompts import sandbox

    sandbox.warm_up()
    child = sandbox._child()
    os.kill(child._process.pid, signal.SIGKILL)
    child._process.wait()
    with Renderer(Template("{{ messages[0].content }}", "x")) as renderer:
        assert renderer.render(HELLO).text == "hello"
