"""The two texts a muse stream fills: what each comes to now, held against what has been sent of it."""

from __future__ import annotations


class Field:
    """A text that mostly grows, and now and then loses its end when that turns out to be a header.

    vLLM classifies the whole output anew at every delta and sends what a text has beyond what was sent, as long as it
    begins with that. This keeps where the two part: behind their common beginning the text has `_held`, and what was
    sent has `_ahead`. At most one of the two is more than nothing, unless they differ in their next character.
    """

    def __init__(self) -> None:
        self.length = 0
        """Characters of the text."""
        self._held: list[str] = []
        self._held_length = 0
        self._ahead = ""
        self._met = 0
        """Characters of `_ahead` that the text has caught up with."""

    def add(self, text: str) -> None:
        self.length += len(text)
        if not self._held_length and self._met < len(self._ahead):
            limit = min(len(text), len(self._ahead) - self._met)
            same = next((at for at in range(limit) if text[at] != self._ahead[self._met + at]), limit)
            self._met += same
            text = text[same:]
        if text:
            self._held.append(text)
            self._held_length += len(text)

    def cut(self, end: str) -> None:
        """Take away the end of the text, which is `end`."""
        self.length -= len(end)
        surplus = len(end) - self._held_length
        if surplus > 0:
            self._ahead, self._met = end[:surplus] + self._ahead[self._met :], 0
            self._held.clear()
            self._held_length = 0
            return
        self._held_length -= len(end)
        left = len(end)
        while left:
            last = self._held.pop()
            if len(last) > left:
                self._held.append(last[:-left])
            left -= min(left, len(last))

    def take(self, held_back: int) -> str:
        """What the text has beyond what was sent, less `held_back` characters at its end; that is sent now."""
        ready = self._held_length - held_back
        if ready <= 0 or self._met < len(self._ahead):
            return ""
        text = "".join(self._held)
        self._held = [text[ready:]] if held_back else []
        self._held_length = max(0, held_back)
        return text[:ready]

    def unsent(self, until: int) -> str:
        """The first `until` characters of the text without as many as were sent, whether they are the same or not."""
        shared = self.length - self._held_length
        return "".join(self._held)[len(self._ahead) - self._met : max(0, until - shared)]
