"""What the battery of `reasonctl check-parser` finds in vLLM's own reasoning parsers: docs/parser-faults.md.

    python benchmarks/parser_faults.py [--vllm ENGINE] [--write] [NAME...]

Each name is put to the test with a vocabulary of its own markers and prompts in each state, as `reasonctl check-parser
--name NAME --vllm ENGINE` does. The rows are printed; `--write` writes the page, with names only their rows anew.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from reasonctl.checks.plg_run import failing, wrong
from reasonctl.kit.battery import Battery, run_battery
from reasonctl.kit.bench import BridgeBench
from reasonctl.kit.cases import Aspect, Outcome
from reasonctl.kit.generated import Smallest
from reasonctl.kit.setting import from_table
from reasonctl.parsers import ROWS
from reasonctl.parsers.bridge.bridge import Bridge
from reasonctl.parsers.bridge.spec import parse_engine

ROOT = Path(__file__).parent.parent
DOC = ROOT / "docs" / "parser-faults.md"
ENGINE = f"{ROOT}/.vllm/vllm-0.33.0:{ROOT}/.vllm/bin/python"
EXAMPLES = 400
"""Generated outputs for each name."""
COLUMNS: Mapping[str, tuple[Aspect, ...]] = {
    "split": ("split", "tool-call"),
    "cut thought": ("truncated",),
    "stream": ("stream", "empty-delta"),
    "larger deltas": ("delta-size",),
    "text held back": ("hold-back",),
    "no thought": ("thinking-off",),
    "`is_reasoning_end`": ("prompt",),
    "grammar, content ids": ("grammar-end", "content-ids", "adjust-request"),
    "tokens counted": ("token-count",),
    "raises": ("raised",),
}
"""Columns of the table, with the aspects of the contract that each tells of."""
_FULL, _STREAM = "full", "streamed"


def battery(bridge: Bridge, name: str, examples: int = EXAMPLES) -> Battery:
    """What comes of one built-in name."""
    setting = from_table(ROWS[name])
    return run_battery(BridgeBench(bridge, name, setting.vocabulary), setting, bridge.described, examples=examples)


def row(found: Battery) -> str:
    """The table's row of one name."""
    if found.unsupported is not None:
        return f"| `{found.setting.name}` | not run: {found.unsupported} |" + " |" * (len(COLUMNS) - 1)
    cells = [_cell(found, aspects) or "ok" for aspects in COLUMNS.values()]
    return f"| `{found.setting.name}` | {' | '.join(cells)} |"


def faultless(line: str) -> bool:
    """A row without a fault."""
    return all(cell.strip() == "ok" for cell in line.split("|")[2:-1])


def document(rows: Iterable[str], version: str) -> str:
    """The page."""
    lines = list(rows)
    good = [line.split("`")[1] for line in lines if faultless(line)]
    columns = " | ".join(("parser", *COLUMNS))
    table = [f"| {columns} |", "|---" * (len(COLUMNS) + 1) + "|", *(line for line in lines if not faultless(line))]
    return _PAGE.format(version=version, table="\n".join(table), good=", ".join(f"`{name}`" for name in good))


def written(text: str) -> dict[str, str]:
    """The rows of a page by name, those without a fault included."""
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    good = text.partition("No fault found: ")[2].partition(".\n")[0].split("`")[1::2]
    return rows | {name: f"| `{name}` |{' ok |' * len(COLUMNS)}" for name in good}


def _cell(found: Battery, aspects: Sequence[Aspect]) -> str:
    every = failing(found)
    words: dict[str, None] = {}
    for aspect in aspects:
        words |= dict.fromkeys(_words(every.get(aspect, [])))
    return "; ".join(words)


def _words(cases: Sequence[tuple[object, str]]) -> Iterator[str]:
    """What went wrong in the named cases, by mode; of generated outputs the smallest, where no named case shows it."""
    named = [one for one, _ in cases if isinstance(one, Outcome)]
    said: dict[str, dict[str, None]] = {}
    for one in named:
        mode = {"full": _FULL, "stream": _STREAM}.get(one.case.mode, "")
        said.setdefault(mode, {}).update(dict.fromkeys(_plain(wrong(one).split(": ")[0]).split(", ")))
    modes: dict[tuple[str, ...], list[str]] = {}
    for mode, symptoms in said.items():
        modes.setdefault(tuple(sorted(symptoms)), []).append(mode)
    for words, where in modes.items():
        text = ", ".join(words)
        named_modes = " and ".join(filter(None, where))
        yield f"{named_modes}: {text}" if named_modes else text
    if not named:
        for smallest in (one for one, _ in cases if isinstance(one, Smallest)):
            yield f"{_plain(smallest.found.wrong)}, smallest `{_plain(smallest.example.probe.text)}`"


def _plain(text: str) -> str:
    text = re.sub(r"delta \d+ says nothing", "empty deltas", text)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "\\n").replace("`", "'")


_PAGE = """# Faults of vLLM's own reasoning parsers

What `reasonctl check-parser --name NAME --vllm ENGINE` finds in every reasoning parser that vLLM {version} registers,
each run by vLLM's own Python files with a vocabulary of its own markers and prompts in each state. The table is made by

```sh
python benchmarks/parser_faults.py --write
```

Symptoms: `reasoning-null` and `content-null` (a field is empty, its text is in the other), `marker-leak`, `text-lost`,
`split-wrong`. *full* is a request without `stream`, *streamed* one with it. Where no named case fails, the smallest
generated output that does stands there.

- *split*: thoughts opened by the prompt or the model, empty ones, one that quotes its start marker, a call in one.
- *cut thought*: the run ends inside it.
- *larger deltas*: several tokens share one, as with speculative decoding.
- *text held back*: a request with a `stop` string, whose text comes later than its token ids.
- *no thought*: the prompt closed the block, or thinking is switched off.
- *tokens counted*: `usage.completion_tokens_details.reasoning_tokens`.

No fault found: {good}.

{table}

Some of it is a policy and not a slip: `minimax_m2_append_think` files nothing as reasoning by design, parsers without a
thinking switch have nothing to tell an answer without a thought by in full mode, and `step3` knows no start marker.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--vllm", default=ENGINE)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args(arguments)
    with Bridge(parse_engine(asked.vllm)) as bridge:
        rows = written(DOC.read_text(encoding="utf-8")) if asked.names and asked.write else {}
        for name in asked.names or [name for name in bridge.names() if name in ROWS]:
            rows[name] = row(battery(bridge, name))
            print(rows[name], file=sys.stderr if asked.write else sys.stdout, flush=True)
        if asked.write:
            page = document([rows[name] for name in sorted(rows)], bridge.described["vllm_version"])
            DOC.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
