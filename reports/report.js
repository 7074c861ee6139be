"use strict";
(() => {
  const WORDS = { r: "reasoning", c: "content", m: "marker", x: "lost" };
  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const FEW = 6; // outcomes whose cells are drawn until more are asked for
  const LONG = 60; // lines from which on those out of sight are not laid out
  const PAPER = 84; // columns of a line on paper
  const MOST_PRINTED = 20000; // tokens that are drawn unasked when the page is printed
  const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/u;

  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, className, ...children) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    node.append(...children);
    return node;
  };

  let drawing = null;
  const data = () => (drawing ??= JSON.parse(document.getElementById("drawing").textContent));

  function numbers(text) {
    const found = [];
    let value = 0, shift = 0;
    for (const char of text) {
      const digit = DIGITS.indexOf(char);
      value += (digit & 31) * 2 ** shift;
      shift += 5;
      if (digit < 32) { found.push(value); value = shift = 0; }
    }
    return found;
  }

  const spans = (text) => [...text.matchAll(/([rcmx])(\d+)/g)].map(([, kind, length]) => [kind, Number(length)]);

  /** Shown text as nodes: the odd parts of a list are escapes. */
  function nodes(shown) {
    if (typeof shown === "string") return [shown];
    return shown.map((part, index) => (index % 2 ? make("i", "esc", part) : part));
  }

  const flat = (shown) => (typeof shown === "string" ? shown : shown.join(""));

  function columns(text) {
    let count = 0;
    for (const char of text) count += WIDE.test(char) ? 2 : 1;
    return count;
  }

  /** `1–3,5` */
  function ranges(found) {
    const parts = [];
    for (const number of found) {
      const last = parts.at(-1);
      if (last && last[1] === number - 1) last[1] = number;
      else parts.push([number, number]);
    }
    return parts.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(",");
  }

  class Strip {
    constructor(box) {
      const { tokens, strips } = data();
      const strip = strips[Number(box.dataset.strip)];
      this.box = box;
      this.card = box.closest("details");
      this.tokens = numbers(strip.t).map((number) => tokens[number]);
      this.rows = strip.r.map(([text, mixed, leaks]) => {
        const kinds = spans(text).map(([kind, length]) => kind.repeat(length)).join("");
        const leaked = new Set(leaks.flatMap(([begin, length]) => Array.from({ length }, (_, index) => begin + index)));
        return { kinds, mixed, leaked };
      });
      this.deltas = this.deltaOf(numbers(strip.d));
      this.names = this.labels();
      this.picked = 0;
      this.drawn = Math.min(FEW, this.rows.length);
      this.focus = 0;
      this.pinned = null;
      this.columns = 0;
      this.build();
    }

    deltaOf(runs) {
      const found = [];
      let number = 0;
      for (let at = 0; at < runs.length; at += 2) {
        for (let count = runs[at]; count > 0; count--) {
          number++;
          for (let token = 0; token < runs[at + 1]; token++) found.push([number, token === 0, runs[at + 1]]);
        }
      }
      this.deltaCount = number;
      return found;
    }

    /** The table of outcomes gets a button for each that is drawn; returns their names. */
    labels() {
      const found = [];
      for (const line of all(".outcomes tbody tr", this.card)) {
        const cell = line.cells[0];
        if (!cell.textContent) continue;
        const index = found.length;
        const [{ textContent: name }, ...rest] = all("code", line.cells[1]);
        const more = rest.length;
        found.push(more ? `${name} and ${more} more` : name);
        const button = make("button", "", String(index + 1));
        button.type = "button";
        button.setAttribute("aria-label", `colour the text by outcome ${index + 1}, ${found[index]}`);
        button.addEventListener("click", () => this.pick(index));
        cell.replaceChildren(button);
      }
      return found;
    }

    build() {
      this.tools = make("div", "tools");
      this.bed = make("div", "bed");
      this.bed.setAttribute("role", "group");
      this.bed.setAttribute("aria-label", `${this.tokens.length} tokens; arrow keys move, Enter holds one, Escape leaves`);
      this.inspector = make("div", "inspector");
      this.inspector.setAttribute("role", "status");
      this.box.replaceChildren(this.tools, this.bed, this.inspector);
      this.card.classList.add("drawn");
      this.toolbar();
      this.layout();
      this.pick(0);
      this.inspect(null);
      this.bed.addEventListener("pointerover", (event) => this.pinned === null && this.inspect(this.indexOf(event.target)));
      this.bed.addEventListener("pointerleave", () => this.pinned === null && this.inspect(null));
      this.bed.addEventListener("focusin", (event) => this.onFocus(this.indexOf(event.target)));
      this.bed.addEventListener("click", (event) => this.onClick(this.indexOf(event.target)));
      this.bed.addEventListener("keydown", (event) => this.onKey(event));
      new ResizeObserver(() => requestAnimationFrame(() => this.layout())).observe(this.box);
    }

    toolbar() {
      const said = this.deltaCount ? `a bar before a token: a delta begins (${this.deltaCount} deltas)` : "not recorded as a stream";
      this.tools.replaceChildren(make("span", "", said));
      if (this.rows.length > this.drawn) {
        const button = make("button", "", `draw all ${this.rows.length} outcomes`);
        button.type = "button";
        button.addEventListener("click", () => {
          this.drawn = this.rows.length;
          this.toolbar();
          this.layout(true);
          this.bed.querySelector("[tabindex='0']")?.focus();
        });
        this.tools.append(button);
      }
    }

    indexOf(node) {
      const token = node.closest?.(".tok");
      return token ? Number(token.dataset.at) : null;
    }

    /** Lines that fill the width; a token that holds a line's end ends one. */
    layout(force = false, paper = 0) {
      const probe = make("span", "", "0".repeat(40));
      this.bed.append(probe);
      const width = probe.getBoundingClientRect().width / 40 || 8;
      probe.remove();
      const room = paper || Math.max(16, Math.floor((this.bed.clientWidth - 20) / width) - 7);
      if (!force && room === this.columns) return;
      const held = document.activeElement?.closest?.(".bed") === this.bed;
      this.columns = room;
      const lines = [];
      let line = [], used = 0;
      this.tokens.forEach(([, shown, name], index) => {
        const text = flat(name ?? shown);
        const wide = Math.max(1, columns(text)) + 3 / width;
        const ends = (one) => typeof one !== "string" && flat(one).endsWith("\\n");
        const before = index ? this.tokens[index - 1][1] : "";
        const turned = ends(before) && !(ends(shown) && columns(text) < 5);
        if (line.length && (turned || used + wide > room)) { lines.push(line); line = []; used = 0; }
        line.push(index);
        used += wide;
      });
      if (line.length) lines.push(line);
      this.cells = [];
      this.lines = lines;
      this.bed.classList.toggle("long", lines.length > LONG);
      this.bed.replaceChildren(...lines.map((indexes) => this.line(indexes)));
      this.paint();
      this.rove(this.focus, held);
    }

    line(indexes) {
      const gutter = make("div", "gutter", make("b", "", String(indexes[0] + 1)));
      gutter.setAttribute("aria-hidden", "true");
      const shown = this.alike(indexes);
      for (const { numbers: those } of shown) gutter.append(make("i", "", ranges(those)));
      const row = make("div", "row", gutter);
      indexes.forEach((index, place) => row.append(this.token(index, place, indexes[place - 1], shown)));
      return row;
    }

    /** The outcomes that are drawn, those that fare alike on this line together. */
    alike(indexes) {
      const found = new Map();
      if (this.rows.length > 1) {
        this.rows.slice(0, this.drawn).forEach((row, number) => {
          const key = indexes.map((index) => row.kinds[index] + (row.leaked.has(index) ? "!" : "")).join("");
          if (found.has(key)) found.get(key).numbers.push(number + 1);
          else found.set(key, { row, numbers: [number + 1] });
        });
      }
      return [...found.values()];
    }

    token(index, place, before, shown) {
      const [, text, name] = this.tokens[index];
      const node = make("span", "tok", make("b", "", ...(name ? nodes(name) : text.length ? nodes(text) : ["·"])));
      node.dataset.at = index;
      node.tabIndex = -1;
      node.setAttribute("role", "img");
      for (const { row } of shown) {
        const kind = row.kinds[index];
        const first = place === 0 || row.kinds[before] !== kind;
        const cell = make("i", kind + (row.leaked.has(index) ? " leak" : ""), first ? kind : "");
        cell.setAttribute("aria-hidden", "true");
        node.append(cell);
      }
      this.cells[index] = node;
      return node;
    }

    paint() {
      const row = this.rows[this.picked];
      this.cells.forEach((node, index) => {
        const kind = row?.kinds[index] ?? "";
        const delta = this.deltas[index]?.[1] ? " delta" : "";
        node.className = `tok ${kind}${delta}${row?.leaked.has(index) ? " leak" : ""}${this.pinned === index ? " pinned" : ""}`;
        node.setAttribute("aria-label", `${flat(this.tokens[index][2] ?? this.tokens[index][1])}, ${WORDS[kind] ?? ""}`);
      });
    }

    pick(index) {
      this.picked = index;
      all(".outcomes tbody tr", this.card).forEach((line) => {
        const button = line.cells[0].querySelector("button");
        const on = button?.textContent === String(index + 1);
        line.classList.toggle("picked", on);
        button?.setAttribute("aria-pressed", String(on));
      });
      this.paint();
    }

    rove(index, take) {
      this.cells[this.focus]?.setAttribute("tabindex", "-1");
      this.focus = Math.max(0, Math.min(index, this.cells.length - 1));
      const node = this.cells[this.focus];
      if (!node) return;
      node.tabIndex = 0;
      if (take) node.focus();
    }

    onFocus(index) {
      if (index === null) return;
      this.rove(index, false);
      if (this.pinned === null) this.inspect(index);
    }

    onClick(index) {
      if (index === null) return;
      this.hold(this.pinned === index ? null : index);
      this.rove(index, true);
    }

    hold(index) {
      this.pinned = index;
      this.paint();
      if (index !== null) this.inspect(index);
    }

    onKey(event) {
      const line = this.lines.findIndex((indexes) => indexes.includes(this.focus));
      const moves = {
        ArrowRight: () => this.focus + 1,
        ArrowLeft: () => this.focus - 1,
        ArrowDown: () => this.across(line, 1),
        ArrowUp: () => this.across(line, -1),
        Home: () => (event.ctrlKey ? 0 : this.lines[line][0]),
        End: () => (event.ctrlKey ? this.cells.length - 1 : this.lines[line].at(-1)),
        PageDown: () => this.across(line, 10),
        PageUp: () => this.across(line, -10),
      };
      if (moves[event.key]) {
        this.rove(moves[event.key](), true);
        if (this.pinned !== null) this.hold(this.focus);
      } else if (event.key === "Enter" || event.key === " ") {
        this.hold(this.pinned === this.focus ? null : this.focus);
      } else if (event.key === "Escape") {
        if (this.pinned !== null) this.hold(null);
        else this.card.querySelector("summary").focus();
      } else return;
      event.preventDefault();
    }

    /** The token that stands nearest in a line further down or up. */
    across(line, by) {
      const to = this.lines[Math.max(0, Math.min(line + by, this.lines.length - 1))];
      const left = this.cells[this.focus].offsetLeft;
      const gap = (index) => Math.abs(this.cells[index].offsetLeft - left);
      return to.reduce((best, index) => (gap(index) < gap(best) ? index : best));
    }

    inspect(index) {
      for (const node of all(".at", this.bed)) node.classList.remove("at");
      this.inspector.classList.toggle("on", index !== null);
      if (index === null) {
        this.inspector.replaceChildren(make("span", "dim", "Point at a token, or move to one with the arrow keys."));
        return;
      }
      this.cells[index].classList.add("at");
      const [id, shown, name] = this.tokens[index];
      const delta = this.deltas[index];
      const said = [
        make("span", "", "token ", make("b", "", String(index + 1)), ` of ${this.tokens.length}`),
        make("span", "", id === null ? "no id" : make("span", "", "id ", make("b", "", String(id)))),
      ];
      if (delta) said.push(make("span", "", `delta ${delta[0]} of ${this.deltaCount} (${delta[2]} ${delta[2] === 1 ? "token" : "tokens"})`));
      const text = make("q", "raw", ...nodes(name ?? shown));
      const what = name ? " shows no text" : shown.length ? "" : " a part of the next character";
      const top = make("div", "said", ...said, make("span", "", "text ", text, make("span", "dim", what)));
      const rows = this.rows.map((row, number) => {
        const mixed = row.mixed[index];
        const kind = row.kinds[index];
        const word = mixed ? spans(mixed).map(([part, length]) => `${length} characters ${WORDS[part]}`).join(", ") : WORDS[kind];
        const leak = row.leaked.has(index) ? " (leaked marker)" : "";
        return make("span", "", `${number + 1} ${this.names[number] ?? ""}: `, make("b", `t-${WORDS[kind]}`, word + leak));
      });
      this.inspector.replaceChildren(top, make("div", "said", ...rows));
    }
  }

  const strips = new Map();
  function open(card) {
    const box = card.querySelector("[data-strip]");
    if (box && !strips.has(box)) strips.set(box, new Strip(box));
    return box && strips.get(box);
  }
  for (const card of all("details.trace")) card.addEventListener("toggle", () => card.open && open(card));

  /** A link to a card opens it. */
  function follow() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.tagName !== "DETAILS") return;
    target.open = true;
    target.querySelector("summary").focus({ preventScroll: true });
    target.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  follow();

  /** The matrix is one stop of the Tab key; arrow keys move in it, and the ending of a prompt shows where one stands. */
  const hint = document.getElementById("hint");
  for (const box of all(".roving")) {
    const grid = all("tbody tr", box).map((line) => all("td", line).map((cell) => cell.querySelector("button")));
    const buttons = grid.flat().filter(Boolean);
    const list = box.nextElementSibling;
    const mark = (button) => {
      for (const node of [...buttons, ...list.children]) node.classList.toggle("same", Boolean(button) && node.dataset.end === button.dataset.end);
      hint.hidden = !button;
      if (!button) return;
      hint.replaceChildren(...list.children[Number(button.dataset.end) - 1].cloneNode(true).childNodes);
      button.setAttribute("aria-describedby", "hint");
      const place = button.getBoundingClientRect();
      hint.style.top = `${place.bottom + scrollY + 6}px`;
      hint.style.left = `${Math.max(8, Math.min(place.left + scrollX, scrollX + document.documentElement.clientWidth - hint.offsetWidth - 8))}px`;
    };
    const rove = (button) => {
      for (const one of buttons) one.tabIndex = one === button ? 0 : -1;
      button.focus();
    };
    buttons.forEach((button, index) => {
      button.tabIndex = index ? -1 : 0;
      button.addEventListener("pointerenter", () => mark(button));
      button.addEventListener("pointerleave", () => mark(null));
      button.addEventListener("focus", () => mark(button));
      button.addEventListener("blur", () => mark(null));
      button.addEventListener("click", () => rove(button));
    });
    box.addEventListener("keydown", (event) => {
      const line = grid.findIndex((cells) => cells.includes(event.target));
      if (line < 0) return;
      const column = grid[line].indexOf(event.target);
      const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
      if (event.key === "Escape") return mark(null);
      if (!steps[event.key]) return;
      event.preventDefault();
      const [down, right] = steps[event.key];
      const next = grid[line + down]?.[column + right];
      if (next) rove(next);
    });
  }

  const theme = document.getElementById("theme");
  const themes = ["as the system", "light", "dark"];
  let at = 0;
  try { at = Math.max(0, themes.indexOf(localStorage.getItem("reasonctl-theme"))); } catch { /* no storage here */ }
  const dress = () => {
    theme.textContent = `theme: ${themes[at]}`;
    if (at) document.documentElement.dataset.theme = themes[at];
    else delete document.documentElement.dataset.theme;
  };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    at = (at + 1) % themes.length;
    try { localStorage.setItem("reasonctl-theme", themes[at]); } catch { /* no storage here */ }
    dress();
  });
  dress();

  const shut = [];
  addEventListener("beforeprint", () => {
    const folded = all("details.card:not([open]), section > details:not([open])");
    shut.push(...folded);
    let left = MOST_PRINTED;
    for (const card of folded) {
      const box = card.querySelector("[data-strip]");
      if (box) {
        left -= numbers(data().strips[Number(box.dataset.strip)].t).length;
        if (left < 0) continue;
        open(card);
      }
      card.open = true;
    }
    for (const strip of strips.values()) strip.layout(true, PAPER);
  });
  addEventListener("afterprint", () => {
    for (const card of shut.splice(0)) card.open = false;
    for (const strip of strips.values()) strip.layout(true);
  });
})();
