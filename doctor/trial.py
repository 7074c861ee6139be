"""A run of the parts that everything else rests on, over a shipped fixture: does reasonctl itself work here?"""

from __future__ import annotations

from typing import Any

MODEL = "fixture:qwen3-thinking"
PARSER = "qwen3"
_OUTPUT = "Two and two.\n</think>\n\nIt is 4."
_SPLIT = ("Two and two.\n", "\n\nIt is 4.")


def trial() -> str | None:
    """What does not work, None where all does: a template in its child process, its tokenizer, a parser model."""
    try:
        return _run()
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split())


def _run() -> str | None:
    from ..checks.rule import all_rules
    from ..parsers import ROWS, build
    from ..prompts.model import load_model
    from ..prompts.render import RenderRequest
    from ..prompts.rendering import renderers

    if not all_rules() or not ROWS:
        return "the catalogue of rules or the table of parsers is empty"
    model = load_model(MODEL)
    opened = renderers(model)
    try:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "What is 2 + 2?"}]
        rendered = opened[False].render(RenderRequest(messages))
    finally:
        for each in opened.values():
            each.close()
    if rendered.text is None or not rendered.text.endswith("<think>\n"):
        why = rendered.error.message if rendered.error is not None else repr(rendered.text)
        return f"the template of {MODEL} renders otherwise: {why}"
    if model.tokenizer is None:
        return f"{MODEL} has no tokenizer: {model.tokenizer_problem}"
    parser = build(PARSER, model.tokenizer)
    parser.begin(model.tokenizer.encode(rendered.text), streaming=False)
    split = parser.split(_OUTPUT, model.tokenizer.encode(_OUTPUT))
    if (split.reasoning, split.content) != _SPLIT:
        return f"the model of {PARSER} splits otherwise: {split.reasoning!r}, {split.content!r}"
    return None
