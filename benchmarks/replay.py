"""`reasonctl replay` beside vLLM's own loop, on the same tokens in one run; how time and memory grow; what cores give.

    python benchmarks/replay.py [speed] [growth] [memory] [cores] [--write]

Without names, all four. Needs the vLLM environment (`.vllm`, as `make test` builds it). `--write` puts the tables into
docs/benchmarks.md. Exit 1 where a figure misses what the project promises.

CPU seconds (user and system) decide: they hold on a machine that is busy with something else. Ours are those of the
whole process `reasonctl replay`: starting Python, loading, reading the file, the full run, the streamed run at one
token a delta, every check, the report. vLLM's are those of the loop over `parse_delta` alone; its detokenizer, starting
it and reading the file are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import outputs
from long_outputs import BUILTIN, long_output

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "benchmarks.md"
ENVIRONMENT = ROOT / ".vllm"
MODELLED = "0.33.0"
GROWTH = 11.0
"""Eight times the tokens may cost so many times the time."""
SHORT, LONG = 4_000, 32_000
BIG_MB = int(os.environ.get("BIG_MB", "1024"))
"""Size of the big trace file, in MB of 10**6 bytes."""
SMALL_MB = 20
FLAT_MB = 64
"""Peak memory of the big file may exceed the small one's by so much."""
RUNS = 3


@dataclass(frozen=True)
class Race:
    """One parser, on `count` outputs of `tokens` tokens of a shipped model; at least so many times as fast as vLLM.

    `what` says what is special about the outputs.
    """

    parser: str
    model: str
    count: int
    tokens: int
    factor: float | None
    make: Callable[..., Iterator[tuple[list[int], list[int]]]] = outputs.outputs
    what: str = ""


RACES = (
    Race("qwen3", "qwen3-thinking", 500, 4_000, 6),
    Race("deepseek_r1", "deepseek-r1", 500, 4_000, 15),
    Race("granite", "instruct", 1, 24_000, 30, outputs.plain_outputs, " (no thought)"),
    Race("granite", "instruct", 1, 24_000, None, outputs.granite_outputs, " (thinks; fails, so 41 more run)"),
)


@dataclass(frozen=True)
class Spent:
    """What a process took. `peak` is its resident memory at most, in MB."""

    wall: float
    cpu: float
    peak: float


class Tables:
    """The tables so far, and what missed."""

    def __init__(self) -> None:
        self.parts: dict[str, list[str]] = {}
        self.missed: list[str] = []

    def add(self, part: str, lines: list[str]) -> None:
        self.parts[part] = lines
        print("\n".join(lines), flush=True)

    def expect(self, holds: bool, what: str) -> str:
        if not holds:
            self.missed.append(what)
        return "yes" if holds else "**no**"


def main() -> int:
    asked = [word for word in sys.argv[1:] if not word.startswith("--")]
    tables = Tables()
    with tempfile.TemporaryDirectory() as folder:
        for name, part in PARTS.items():
            if not asked or name in asked:
                part(tables, Path(folder))
    if "--write" in sys.argv[1:]:
        write(tables)
    for what in tables.missed:
        print(f"MISSED {what}")
    return int(bool(tables.missed))


def speed(tables: Tables, folder: Path) -> None:
    lines = [
        "| parser | outputs | tokens | vLLM: loop | (detokenizer) | reasonctl: whole process | times faster (CPU) "
        "| (wall) | promised | same split |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for race in RACES:
        file = folder / f"{race.parser}.jsonl"
        total = outputs.write(file, race.make(race.model, race.count, race.tokens))
        theirs = vllm_loop(file, race)
        ours = min((replayed(file, race) for _ in range(RUNS)), key=lambda spent: spent.cpu)
        (wall, cpu), faster = theirs["loop"], theirs["loop"][1] / ours.cpu
        promised = "nothing"
        if race.factor is not None:
            missed = f"{race.parser}: {faster:.1f} times, {race.factor:g} promised"
            promised = f"at least {race.factor:g}: {tables.expect(faster >= race.factor, missed)}"
        same = tables.expect(splits(file, race, folder) == theirs["splits"], f"{race.parser}: the splits differ")
        lines.append(
            f"| {race.parser}{race.what} | {race.count} x {race.tokens:,} | {total:,} "
            f"| {cpu:.1f} s ({wall:.1f} s wall) "
            f"| {theirs['detokenizer'][1]:.1f} s | {ours.cpu:.2f} s ({ours.wall:.2f} s wall) | {faster:.1f} "
            f"| {wall / ours.wall:.1f} | {promised} | {same} |"
        )
    tables.add("speed", lines)


def growth(tables: Tables, folder: Path) -> None:
    from reasonctl.parsers.run import run_parser

    rows = []
    for name in BUILTIN:
        spent = []
        for tokens in (SHORT, LONG):
            made = long_output(name, tokens)
            least = float("inf")
            for _ in range(RUNS):
                begun = time.process_time()
                run_parser(name, made.vocabulary, made.kwargs, pieces=made.pieces)
                least = min(least, time.process_time() - begun)
            spent.append(least)
        rows.append((spent[1] / spent[0], name, *spent))
    worst = max(rows)[0]
    holds = tables.expect(worst <= GROWTH, f"time grows {worst:.1f} times over 8 times the tokens ({max(rows)[1]})")
    lines = [
        f"All {len(rows)} parsers: at most {worst:.1f} times the time (limit {GROWTH:g}: {holds}).",
        "",
        f"| parser | {SHORT:,} tokens | {LONG:,} tokens | times the time |",
        "|---|---|---|---|",
        *(
            f"| {name} | {short * 1e3:.1f} ms | {long * 1e3:.1f} ms | {times:.1f} |"
            for times, name, short, long in rows
        ),
    ]
    tables.add("growth", lines)


def memory(tables: Tables, folder: Path) -> None:
    race = RACES[0]
    piece = folder / "piece.jsonl"
    outputs.write(piece, race.make(race.model, 400, race.tokens), deltas=outputs.tokenizer(race.model))
    rows = []
    for size in (SMALL_MB, BIG_MB):
        file = folder / "big.jsonl"
        length = repeated(piece, file, size * 10**6)
        rows.append((length, replayed(file, race)))
        file.unlink()
    (small, least), (big, most) = rows
    more = most.peak - least.peak
    holds = tables.expect(more <= FLAT_MB, f"{more:.0f} MB more memory for a file of {big / 1e6:.0f} MB")
    lines = [
        "| trace file | peak memory | wall | CPU |",
        "|---|---|---|---|",
        *(
            f"| {length / 1e6:,.0f} MB | {spent.peak:.0f} MB | {spent.wall:.1f} s | {spent.cpu:.1f} s |"
            for length, spent in rows
        ),
        "",
        f"{big / small:.0f} times the file, {more:+.0f} MB (limit {FLAT_MB} MB: {holds}).",
    ]
    tables.add("memory", lines)


def cores(tables: Tables, folder: Path) -> None:
    race = RACES[0]
    file = folder / "jobs.jsonl"
    outputs.write(file, race.make(race.model, 3 * race.count, race.tokens))
    rows = [(jobs, replayed(file, race, "--jobs", str(jobs))) for jobs in dict.fromkeys((1, 2, os.cpu_count() or 1))]
    lines = [
        "| --jobs | wall | CPU | times faster |",
        "|---|---|---|---|",
        *(
            f"| {jobs} | {spent.wall:.1f} s | {spent.cpu:.1f} s | {rows[0][1].wall / spent.wall:.2f} |"
            for jobs, spent in rows
        ),
    ]
    tables.add("cores", lines)


PARTS: dict[str, Callable[[Tables, Path], None]] = {
    "speed": speed,
    "growth": growth,
    "memory": memory,
    "cores": cores,
}


def replayed(file: Path, race: Race, *more: str) -> Spent:
    """`reasonctl replay` as a process of its own, its report thrown away."""
    with Path(os.devnull).open("w") as nowhere:
        begun = time.perf_counter()
        child = subprocess.Popen([*_replay(file, race), *more], stdout=nowhere)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):  # 1: a parser fails its checks, as granite does when it streams
        raise RuntimeError(f"reasonctl replay ended with {child.returncode}")
    return Spent(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def splits(file: Path, race: Race, folder: Path, count: int = 20) -> list[str]:
    """Digests of what the first outputs streamed to, by reasonctl."""
    few = folder / "few.jsonl"
    with file.open() as lines:
        few.write_text("".join(line for _, line in zip(range(count), lines, strict=False)))
    done = subprocess.run([*_replay(few, race), "--format", "json"], check=False, capture_output=True, text=True)
    streams = [result["stream"][0] for result in json.loads(done.stdout)["facts"]["results"]]
    texts = [f"{stream['reasoning'] or ''}\0{stream['content'] or ''}" for stream in streams]
    return [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def _replay(file: Path, race: Race) -> list[str]:
    command = [sys.executable, "-m", "reasonctl", "replay", str(file), "--model", f"fixture:{race.model}"]
    return [*command, "--parser", race.parser, "--chunking", "token"]


def vllm_loop(file: Path, race: Race) -> dict[str, Any]:
    """What vLLM takes for the same file (see vllm_loop.py)."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
    environment |= {"PYTHONPATH": str(ENVIRONMENT / f"vllm-{MODELLED}")}
    script = Path(__file__).with_name("vllm_loop.py")
    command = [ENVIRONMENT / "bin" / "python", script, file, outputs.MODELS / race.model, race.parser]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    if found["vllm"] != MODELLED:
        raise RuntimeError(f"this is vLLM {found['vllm']}, not {MODELLED}")
    return found


def repeated(piece: Path, into: Path, size: int) -> int:
    """A file made of the same traces again and again, of at least so many bytes; its size."""
    content = piece.read_bytes()
    with into.open("wb") as file:
        while file.tell() < size:
            file.write(content[: max(content.find(b"\n", size - file.tell()) + 1, 0) or len(content)])
        return file.tell()


def write(tables: Tables) -> None:
    """Put the tables that were made into the document, each between its own marks."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for part, lines in tables.parts.items():
        begin, end = f"<!-- {part} -->\n", f"<!-- /{part} -->"
        head, tail = text.partition(begin)[0], text.partition(end)[2]
        text = f"{head}{begin}{machine()}\n\n" + "\n".join(lines) + f"\n{end}{tail}"
    DOCUMENT.write_text(text, encoding="utf-8")


def machine() -> str:
    model = next(
        (line.partition(":")[2].strip() for line in _cpu_info() if line.startswith("model name")), platform.machine()
    )
    return f"Made on {os.cpu_count()} cores ({model}), Python {platform.python_version()}, vLLM {MODELLED}."


def _cpu_info() -> list[str]:
    file = Path("/proc/cpuinfo")
    return file.read_text().splitlines() if file.is_file() else []


if __name__ == "__main__":
    sys.exit(main())
