"""One output through one parser: what the server would feed it, and what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .layouts import Driven

if TYPE_CHECKING:
    from .runner import Far


def prepare(far: Far, case: dict[str, Any]) -> dict[str, Any]:
    """What the parser makes of the request and the prompt, before anything is generated.

    Args:
        far: this runner.
        case: `parser`, `tokenizer` (a key), `kwargs`, `request_kwargs`, `prompt_ids` (or None).

    Returns:
        `skip_special_tokens`, null where the parser leaves it alone, and `ended`; `error`, the class of what vLLM
        raises, and its `message`, in place of what is missing; `unbuilt` where its constructor raises. Or just
        `unsupported`: why this parser cannot be run here at all.
    """
    request = far.vllm.request(case["request_kwargs"])
    why = far.vllm.unsupported(case["parser"], far.tokenizers[case["tokenizer"]])
    if why is not None:
        return {"unsupported": why}
    answer: dict[str, Any] = {"unbuilt": True}
    _prepared(far, case, request, answer)
    return answer


def run(far: Far, case: dict[str, Any]) -> dict[str, Any]:
    """One output, whole and once for every way of cutting it into deltas.

    Args:
        far: this runner.
        case: as in `prepare`, with the whole `text` and `ids`, and `streams`: each a list of [text, ids], or columns:
            `texts`, the `ids` of all deltas, and `ends`, how many of them have come with each (null: one each).
            `summed` asks for the texts of a stream in place of its deltas, and for messages of errors; `messages` for
            those alone. `whole`: false leaves the whole output out, and `full` is empty.

    Returns:
        `prepare`'s answer with `full` and `streams`: {"reasoning", "content"} or, of a stream that is not summed,
        {"deltas": [[reasoning, content] or null, ...]}, each with `tokens`. Where vLLM raises, `error` takes the place
        of what is missing.
    """
    request = far.vllm.request(case["request_kwargs"])
    answer: dict[str, Any] = {}
    request = _prepared(far, case, request, answer)
    answer["full"] = _full(far, case, request) if case.get("whole", True) else {}
    answer["streams"] = [_stream(far, case, request, deltas) for deltas in case["streams"]]
    if not (case.get("summed") or case.get("messages")):
        for part in (answer, answer["full"], *answer["streams"]):
            part.pop("message", None)
    return answer


def build(far: Far, case: dict[str, Any]) -> dict[str, Any]:
    """Whether this parser can be built: `error` and `message` where its constructor raises."""
    answer: dict[str, Any] = {}
    try:
        build_one(far, case)
    except Exception as error:
        raised(answer, error)
    return answer


OPS = {"prepare": prepare, "run": run, "build": build}


def _prepared(far: Far, case: dict[str, Any], request: Any, answer: dict[str, Any]) -> Any:
    try:
        default = request.skip_special_tokens
        parser = build_one(far, case)
        answer.pop("unbuilt", None)
        request, ended = parser.prepare(case["prompt_ids"], request)
        changed = request.skip_special_tokens
        answer["skip_special_tokens"] = None if changed is default else changed
        answer["ended"] = truth(ended)
    except Exception as error:
        raised(answer, error)
    return request


def _full(far: Far, case: dict[str, Any], request: Any) -> dict[str, Any]:
    result: dict[str, Any] = {}
    try:
        parser = build_one(far, case)
        reasoning, content = parser.parse(case["text"], case["ids"], case["prompt_ids"], request)
        result["reasoning"], result["content"] = _text(reasoning), _text(content)
        result["tokens"] = _number(parser.count(case["ids"]))
    except Exception as error:
        raised(result, error)
    return result


def _stream(far: Far, case: dict[str, Any], request: Any, given: Any) -> dict[str, Any]:
    deltas = deltas_of(given)
    found: list[list[str | None] | None] = []
    result: dict[str, Any] = {} if case.get("summed") else {"deltas": found}
    try:
        parser = build_one(far, case)
        for number, (text, ids) in enumerate(deltas, 1):
            delta = parser.delta(text, ids, case["prompt_ids"], request, finished=number == len(deltas))
            found.append(message(delta))
        result["tokens"] = _number(parser.count(tuple(case["ids"])))
        if case.get("summed"):
            result["reasoning"], result["content"] = (_sum(found, side) for side in (0, 1))
    except Exception as error:
        raised(result, error)
    return result


def message(delta: Any) -> list[str | None] | None:
    """What a delta says to the client: [reasoning, content], None where nothing is sent."""
    return None if delta is None else [_text(delta.reasoning), _text(delta.content)]


def deltas_of(given: Any) -> list[Any]:
    """The deltas of a stream, each text and ids."""
    if isinstance(given, list):
        return given
    ids = given["ids"]
    ends = given["ends"] or range(1, len(given["texts"]) + 1)
    begins = (0, *ends)
    return [(text, ids[begins[at] : end]) for at, (text, end) in enumerate(zip(given["texts"], ends))]  # noqa: B905


def build_one(far: Far, case: dict[str, Any]) -> Driven:
    """A parser for the case's request. Raises what vLLM raises."""
    return far.vllm.build(case["parser"], far.tokenizers[case["tokenizer"]], case["kwargs"])


def _sum(found: list[list[str | None] | None], side: int) -> str | None:
    texts = [text for delta in found if delta is not None and (text := delta[side]) is not None]
    return "".join(texts) if texts else None


def raised(result: dict[str, Any], error: Exception) -> None:
    """Say in a result what was raised."""
    result["error"] = type(error).__name__
    result["message"] = " ".join(str(error).split())[:2000]


def truth(value: Any) -> bool | str | None:
    """A parser's yes or no; what it is, where it is neither and not null."""
    return value if value is None or isinstance(value, bool) else type(value).__name__


def _number(value: Any) -> int | str | None:
    return value if value is None or isinstance(value, int) else type(value).__name__


class ValidationError(Exception):
    """Named as pydantic's, which the server's own message class raises here."""


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValidationError(f"a parser gave {type(value).__name__} where a text is expected")
