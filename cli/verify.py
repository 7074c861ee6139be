"""`reasonctl verify`: does a thinking budget do on a real server what the configuration says?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..checks.finding import Coverage
from ..errors import InputError
from .endpoint import ApiKeyEnv, ServedModelName, model_named, named_vllm, needs_endpoint, target_of
from .given import not_empty
from .options import CheckOptions, checking

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..budgets.counting import Rule
    from ..checks.report import Report
    from ..engine.cases import Case
    from ..engine.endpoint import Endpoint
    from ..engine.kinds import Server
    from ..engine.server import Launch, VllmServer
    from ..engine.speech import Speaker
    from ..engine.verify import Subject
    from ..parsers.target import Target
    from ..prompts.model import Model
else:
    from ..checks.report import Report

_LAB_NAME = "lab"
_MOST = 64
"""Requests that a server we did not start gets, unless told otherwise."""
_LAST_SECONDS = 5.0
"""How long the end of a started server is waited for when it cut off an answer."""
_LADDER = (0, 64, 512)
"""Budgets for a model of unknown habits, unless told otherwise."""


@checking
def verify(
    model: Annotated[
        str | None, typer.Option(metavar="X", help="A folder with weights; a server is started on it.")
    ] = None,
    lab: Annotated[str | None, typer.Option(metavar="FAMILY", help="A lab model; see `reasonctl lab list`.")] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|N", help="Budgets to try: numbers, or a budget file. Repeatable."),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="A server that runs already, in place of starting one.")
    ] = None,
    runner: Annotated[str | None, typer.Option(metavar="v1|v2", help="vLLM's model runner.")] = None,
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="What the started server runs on.")] = "auto",
    parser: Annotated[
        str | None, typer.Option(metavar="NAME", help="The reasoning parser. Default: the lab's, or the model's.")
    ] = None,
    served_model_name: ServedModelName = None,
    api_key_env: ApiKeyEnv = None,
    max_requests: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="With --endpoint: the most requests to send.")
    ] = None,
    thinking_tokens: Annotated[
        int, typer.Option(metavar="N", help="With --lab: tokens of its thought when no budget cuts it.")
    ] = 40,
    log: Annotated[Path, typer.Option(metavar="FILE", help="Where the started server's output goes.")] = Path(
        "reasonctl-verify.log"
    ),
    *,
    options: CheckOptions,
) -> Report:
    """Send requests with thinking budgets to a real server and hold what comes back against what must come."""
    from ..engine.endpoint import Endpoint, key_from
    from ..engine.kinds import identify
    from ..engine.verify import Verifier
    from ..parsers.target import Target

    not_empty(model=model, lab=lab, endpoint=endpoint, parser=parser, served_model_name=served_model_name)
    _one_subject(model, lab, endpoint, options)
    if endpoint is None:
        needs_endpoint(served_model_name, api_key_env, max_requests)
    asked = _Asked(
        _one("--runner", runner, ("v1", "v2")), _one("--device", device, ("auto", "cpu", "cuda")), parser, log
    )
    budgets = _budgets(budget or [])
    key = key_from(api_key_env)
    with ExitStack() as stack:
        where = _subject_of(lab, model, thinking_tokens, stack, started=endpoint is None)
        started: VllmServer | None = None
        if endpoint is None:
            started = stack.enter_context(_started(where, asked, options))
        at = stack.enter_context(Endpoint(started.url if started is not None else endpoint or "", key=key))
        server = identify(at)
        name = (
            _LAB_NAME
            if started is not None
            else model_named(server, served_model_name, at, prefer=_LAB_NAME if lab is not None else None)
        )
        target = options.target or target_of(server) or options.engines.fallback or Target()
        rule = _rule(target, asked, started, server)
        subject = _judged(where, name, rule, target, asked, server, at)
        most = max_requests if max_requests is not None else None if started is not None else _MOST
        cases = _cases(where.speaker, budgets)
        with _progress(len(cases), shown=not options.quiet) as advance:

            def alive() -> None:
                if started is not None:
                    started.check(seconds=_LAST_SECONDS)

            verifier = Verifier(at, subject, most=most, watch=advance, alive=alive)
            facts = tuple(verifier.run(cases))
        return _report(facts, verifier.left_out, where, subject, server, started, asked, options)


@dataclass(frozen=True)
class _Asked:
    runner: Literal["v1", "v2"] | None
    device: Literal["auto", "cpu", "cuda"]
    parser: str | None
    log: Path


@dataclass(frozen=True)
class _Where:
    """The model: its folder where one is at hand, and its script where it is a lab model."""

    folder: Path | None = None
    model: Model | None = None
    speaker: Speaker | None = None


def _one_subject(model: str | None, lab: str | None, endpoint: str | None, options: CheckOptions) -> None:
    if model is not None and lab is not None:
        raise InputError("one of them is served, not both", source="--model and --lab", mend="leave one out")
    if model is None and lab is None and endpoint is None:
        raise InputError(
            "there is nothing to verify",
            mend="give --lab FAMILY, --model FOLDER, or --endpoint URL of a running server",
        )
    if endpoint is not None and named_vllm(options):
        raise InputError(
            "a server that runs already needs no interpreter", source="--vllm", mend="leave out --vllm or --endpoint"
        )


def _one(flag: str, value: str | None, allowed: tuple[str, ...]) -> Any:
    if value is not None and value not in allowed:
        raise InputError(f"{value!r} is none of {', '.join(allowed)}", source=flag, mend=f"use {allowed[0]}")
    return value


def _budgets(values: Sequence[str]) -> list[tuple[str, int | None]]:
    """(label, budget) of every number, and of every effort of a budget file."""
    found: dict[str, int | None] = {}
    for value in values:
        try:
            found[f"budget {int(value)}"] = int(value)
        except ValueError:
            found |= _budgets_in(value)
    for name, number in found.items():
        if number is not None and number < -1:
            raise InputError(f"{name} is below -1", source="--budget", mend="give 0 or more, or -1 for no limit")
    return list(found.items())


def _budgets_in(value: str) -> dict[str, int | None]:
    from ..budgets.config import read_config

    config = read_config(value)
    budget = config.budget
    if budget is None:
        raise InputError("there is no thinking budget in it", source=value, mend="name a budget file or a number")
    entries = [(entry.key, entry.value) for entry in budget.fields().values()] if budget.entries else [(None, budget)]
    found: dict[str, int | None] = {}
    for key, node in entries:
        if type(node.scalar) is not int:
            place = node.location
            raise InputError(
                f"the budget{f' of {key}' if key else ''} is no whole number",
                source=place.path,
                line=place.line,
                mend="see `reasonctl validate-config`",
            )
        found[f"{f'effort {key}, ' if key else ''}budget {node.scalar}"] = node.scalar
    return found


def _subject_of(lab: str | None, model: str | None, thinking_tokens: int, stack: ExitStack, *, started: bool) -> _Where:
    import tempfile

    from ..engine.lab import build_lab
    from ..engine.speech import Speaker
    from ..prompts.model import load_model

    if lab is not None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reasonctl-lab-"))) / lab
        family = build_lab(folder, lab, thinking_tokens=thinking_tokens)
        return _Where(folder, load_model(str(folder)), Speaker(family, thinking_tokens))
    if model is None:
        return _Where()
    loaded = load_model(model)
    folder = Path(model).expanduser()
    if started and not (folder.is_dir() and any(folder.glob("*.safetensors"))):
        raise InputError(
            "there are no weights to serve", source=model, mend="give a folder with *.safetensors files, or --endpoint"
        )
    return _Where(folder, loaded)


@contextmanager
def _started(where: _Where, asked: _Asked, options: CheckOptions) -> Iterator[VllmServer]:
    from ..engine.server import Launch, VllmServer

    if where.folder is None:
        raise InputError("there is no model to serve", mend="give --lab or --model")
    spec = options.engines.specs[0] if options.engines.specs else None
    family = where.speaker.family if where.speaker is not None else None
    launch = Launch(
        spec,
        where.folder,
        _LAB_NAME,
        _parser_of(where, asked),
        asked.log,
        device=asked.device,
        runner=asked.runner,
        positions=4096 if family is not None else None,
        arguments=family.arguments if family is not None else (),
    )
    with _starting(launch, shown=not options.quiet) as watch, VllmServer(launch, watch=watch) as server:
        watch(-1.0, "")
        yield server


def _parser_of(where: _Where, asked: _Asked) -> str | None:
    """The reasoning parser that the server is started with, or is known to run."""
    if asked.parser is not None:
        return None if asked.parser == "none" else asked.parser
    if where.speaker is not None:
        return where.speaker.family.parser
    if where.model is None:
        return None
    from ..parsers import paired

    names = paired(Path(where.model.source).name)
    if not names:
        raise InputError(
            "the parser table knows no parser for it", source=where.model.source, mend="name one with --parser"
        )
    return names[0]


def _rule(target: Target, asked: _Asked, started: VllmServer | None, server: Server) -> Rule:
    """How the server counts: as its runner does, or as SlimServe does."""
    if target.product == "slimserve":
        return "slimserve"
    if started is not None:
        return "vllm-v2" if started.runner == "v2" else "vllm-v1"
    if asked.runner is not None:
        return "vllm-v2" if asked.runner == "v2" else "vllm-v1"
    # V2 is the default since 0.29 where there is Triton, which is on every GPU.
    return "vllm-v2" if target.version >= (0, 29, 0) else "vllm-v1"


def _judged(
    where: _Where, name: str, rule: Rule, target: Target, asked: _Asked, server: Server, at: Endpoint
) -> Subject:
    from ..engine.verify import Subject

    parser = (
        asked.parser or server.parser if where.speaker is None and where.model is None else _parser_of(where, asked)
    )
    tokenizer = where.model.tokenizer if where.model is not None else None
    if where.speaker is not None:
        speaker = where.speaker
        eos = frozenset((speaker.eos,))
        return Subject(name, rule, speaker.markers, parser, target, tokenizer, speaker, eos)
    eos = where.model.eos_ids if where.model is not None else frozenset()
    markers = _markers(parser, tokenizer.encode if tokenizer is not None else None, at, name)
    return Subject(name, rule, markers, parser, target, tokenizer, None, eos)


def _markers(parser: str | None, encode: Callable[[str], list[int]] | None, at: Endpoint, name: str) -> Any:
    """The markers of a model that is not a lab's: the parser's, as the model's own tokenizer cuts them."""
    from ..budgets.counting import Markers
    from ..parsers import ROWS

    row = ROWS.get(parser or "qwen3")
    start, end = (row.start[0], row.end[0]) if row is not None and row.start and row.end else ("<think>", "</think>")
    cut: list[tuple[int, ...]] = []
    for text in (start, end):
        if encode is not None:
            cut.append(tuple(encode(text)))
            continue
        value = at.ask("/tokenize", {"model": name, "prompt": text, "add_special_tokens": False})
        tokens = value.get("tokens") if isinstance(value, dict) else None
        if not isinstance(tokens, list) or not tokens or not all(type(one) is int for one in tokens):
            return None
        cut.append(tuple(tokens))
    return Markers(cut[0], cut[1], cut[1])


def _cases(speaker: Speaker | None, budgets: list[tuple[str, int | None]]) -> list[Case]:
    from ..engine.cases import lab_cases, real_cases

    if speaker is not None:
        return lab_cases(speaker, budgets or None)
    return real_cases(budgets or [(f"budget {number}", number) for number in _LADDER])


def _report(
    facts: tuple[Any, ...],
    left_out: Sequence[str],
    where: _Where,
    subject: Subject,
    server: Server,
    started: VllmServer | None,
    asked: _Asked,
    options: CheckOptions,
) -> Report:
    from ..checks.eng import EngineFacts, findings, lost
    from ..checks.internal import ResultLost
    from ..checks.report import make_report
    from ..parsers.target import BUILTIN_ENGINE

    runner = started.runner if started is not None else {"vllm-v2": "v2", "vllm-v1": "v1"}.get(subject.rule)
    called = f"{server.kind} {server.version}" if server.version else server.kind
    told = [*findings(EngineFacts(facts, called, subject.parser))]
    told += [
        ResultLost.finding(
            f"{one.case.name}: {one.lost}",
            hint="the other cases stand",
            subject={"server": called, "request": {"name": one.case.name}},
        )
        for one in lost(facts)
    ]
    return make_report(
        "verify",
        target=str(subject.target),
        engine=BUILTIN_ENGINE,
        facts={
            "server": {
                "kind": server.kind,
                "version": server.version,
                "device": started.device if started is not None else None,
                "runner": runner,
                "runner_known": started is not None or asked.runner is not None,
                "log": str(asked.log) if started is not None else None,
            },
            "model": {
                "name": subject.name,
                "lab": where.speaker.family.name if where.speaker is not None else None,
                "style": where.speaker.family.style if where.speaker is not None else None,
                "thinking_tokens": where.speaker.thinking_tokens if where.speaker is not None else None,
                "parser": subject.parser,
            },
            "rule": subject.rule,
            "cases": [one.as_json() for one in facts],
        },
        findings=told,
        coverage=list(_coverage(facts, left_out, subject, started, runner)),
        policy=options.policy,
    )


def _coverage(
    facts: Sequence[Any], left_out: Sequence[str], subject: Subject, started: VllmServer | None, runner: str | None
) -> Iterator[Coverage]:
    open_ = sum(one.ok is None for one in facts)
    blind = [one for one in facts if one.lost is None and one.observed.refused is None and one.case.api == "chat"]
    if blind and all(one.observed.ids is None for one in blind):
        yield Coverage(
            "budget", "skipped", "the server sends no token ids (return_token_ids), so nothing can be counted"
        )
    elif open_:
        ended = (
            "ended by itself below the budget, which proves nothing" if subject.speaker is None else "cannot be judged"
        )
        yield Coverage("budget", "partial", f"{open_} of {len(facts)} cases {ended}")
    else:
        yield Coverage("budget", "examined")
    if left_out:
        yield Coverage("requests", "partial", f"{len(left_out)} cases were left out (--max-requests)")
    split = subject.vocabulary is not None
    yield Coverage("split", "examined" if split else "absent", None if split else "no tokenizer here: give --model")
    other = "v1" if runner == "v2" else "v2"
    why = (
        "needs a GPU" if other == "v2" and started is not None and started.device == "cpu" else "another run: --runner"
    )
    yield Coverage(f"runner {other}", "absent", why)
    yield Coverage("speculative decoding", "absent", "no draft model was served")


@contextmanager
def _starting(launch: Launch, *, shown: bool) -> Iterator[Callable[[float, str], None]]:
    """A spinner on stderr while the server starts; on something else than a terminal one line at the start."""
    if not shown:
        yield lambda seconds, line: None
        return
    if not sys.stderr.isatty():
        typer.echo(f"reasonctl: starting vLLM, which takes up to a minute or two (log: {launch.log})", err=True)
        yield lambda seconds, line: None
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    status = console.status(Text("starting vLLM"))
    status.start()

    def watch(seconds: float, line: str) -> None:
        if seconds < 0:
            status.stop()
        else:
            # One row: a spinner that wraps leaves its rows behind.
            status.update(Text(f"starting vLLM, {seconds:.0f} s: {line}"[: max(20, console.width - 4)]))

    try:
        yield watch
    finally:
        status.stop()


@contextmanager
def _progress(total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    if not shown or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"case 1 of {total}") as status:
        yield lambda done: status.update(f"case {min(done + 1, total)} of {total}")
