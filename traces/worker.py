"""A process of `traces.pool`: takes the setting and the plan, then replays one trace after another."""

from __future__ import annotations

from contextlib import closing

from .child import Parent
from .context import Context
from .replay import open_engines, replay_trace


def main() -> None:
    """Answer every trace with its facts, or with the exception that came instead."""
    parent = Parent()
    requests = parent.requests()
    setting, plan = next(requests)
    with Context(setting) as context, closing(open_engines(plan)) as engines:
        context.made_by(engines.first)
        for trace in requests:
            try:
                answer = replay_trace(trace, context, plan, engines)
            except Exception as error:
                parent.answer(error)
            else:
                parent.answer(answer)


if __name__ == "__main__":
    main()
