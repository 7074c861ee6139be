"""A model's prompts as a server's counter sees them: where it starts to count, and what the prompt itself spends.

This is what `audit --budget` and `validate-config --model` know beyond a configuration: the rendered prompts, their
token ids, and how this model thinks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .counting import Markers, Rule, rfind
from .strings import Strings

if TYPE_CHECKING:
    from ..checks.probes import Weight
    from ..checks.thinking import Thinking
    from ..parsers.base import Vocabulary
    from ..prompts.survey import Survey


@dataclass(frozen=True, slots=True)
class CountedPrompt:
    """One prompt. `thinks`: the model may think behind it; `opens` is what it then writes first (nothing, where the
    prompt has opened the block).

    `armed`: the counter has started, in the prompt or with what the model writes first; None where nobody can tell.
    `charged` are the prompt's tokens that it counts, None where the prompt starts no count.
    """

    conversation: str
    variant: Mapping[str, Any]
    state: str
    thinks: bool
    opens: str | None
    weight: Weight
    armed: bool | None = None
    charged: int | None = None
    marker: str | None = None


@dataclass(frozen=True)
class ModelContext:
    """A model under one server.

    `prompts` are all its prompts, `marker` what a user types in the conversation `user_start_marker`. `call` is how it
    opens a tool call, None where its template offers no tools. `real`: the ids are the model's own tokenizer's.
    """

    model: str
    thinks: bool
    start: str | None
    end: str | None
    prompts: tuple[CountedPrompt, ...]
    ids: tuple[tuple[int, ...], ...]
    vocabulary: Vocabulary
    marker: str
    call: str | None = None
    architectures: tuple[str, ...] = ()
    real: bool = False
    lone: bool = False

    def counted(self, strings: Strings, rule: Rule) -> ModelContext:
        """The same with what a counter of these strings makes of every prompt."""
        markers = markers_of(strings, self.vocabulary)
        end = markers.forced_end if rule == "vllm-v1" else markers.natural_end
        return replace(
            self,
            prompts=tuple(
                _counted(prompt, ids, markers.start, end, self.vocabulary)
                for prompt, ids in zip(self.prompts, self.ids, strict=True)
            ),
        )

    def plain(self, conversation: str, variant: Mapping[str, Any]) -> CountedPrompt | None:
        return next((p for p in self.prompts if p.conversation == conversation and p.variant == variant), None)


def model_context(
    survey: Survey,
    thinking: Thinking,
    *,
    asked: Sequence[Mapping[str, Any]] = (),
    call: str | None = None,
) -> ModelContext:
    """What a surveyed model's prompts are to a counter.

    Args:
        survey: its rendered prompts.
        thinking: how it thinks.
        asked: kwargs that somebody is known to send.
        call: how it opens a tool call.
    """
    from ..checks.probes import cell_of
    from ..checks.thinking import thinks
    from ..parsers.assumed import AssumedVocabulary

    model = survey.model
    words: Vocabulary = model.tokenizer or AssumedVocabulary()  # by the parsers' markers: they are what is counted by
    found: list[CountedPrompt] = []
    all_ids: list[tuple[int, ...]] = []
    for state in survey.states:
        if state.prompt is None:
            continue
        ids = state.token_ids if state.token_ids is not None else tuple(words.encode(state.prompt))
        cell = cell_of(state, survey, ids, tuple(asked))
        opens = None if cell.unclear else "" if state.state == "open" else thinking.start
        found.append(
            CountedPrompt(
                conversation=state.conversation,
                variant=dict(state.variant),
                state=state.state,
                thinks=cell.thinks,
                opens=opens,
                weight=cell.weight,
                marker=state.marker,
            )
        )
        all_ids.append(tuple(ids))
    return ModelContext(
        model=model.source,
        thinks=thinks(thinking),
        start=thinking.start,
        end=thinking.end,
        prompts=tuple(found),
        ids=tuple(all_ids),
        vocabulary=words,
        marker=survey.markers.start,
        call=call,
        architectures=model.architectures,
        real=model.tokenizer is not None,
        lone=model.kind in ("template", "tokenizer_config"),
    )


def markers_of(strings: Strings, words: Vocabulary | None = None) -> Markers:
    """The ids a counter goes by; without a tokenizer, one for each marker and each word."""
    from ..parsers.assumed import AssumedVocabulary

    texts = [strings.start, strings.natural, strings.parser_end or ""]
    words = words or AssumedVocabulary([text for text in texts if text])
    return Markers(*(tuple(words.encode(text)) for text in (strings.start, strings.natural, strings.forced)))


def _counted(
    prompt: CountedPrompt, ids: tuple[int, ...], start: tuple[int, ...], end: tuple[int, ...], words: Vocabulary
) -> CountedPrompt:
    opened, closed = rfind(ids, start), rfind(ids, end)
    charged = len(ids) - opened - len(start) if opened > closed else None
    armed: bool | None = charged is not None
    if not armed and prompt.thinks:
        # What the model writes first is cut by itself: a model writes tokens, and merges none with the prompt's.
        armed = None if prompt.opens is None else rfind(tuple(words.encode(f"{prompt.opens}Let me see.")), start) >= 0
    return replace(prompt, armed=armed, charged=charged)
