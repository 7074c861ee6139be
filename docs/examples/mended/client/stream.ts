// Prints a streamed answer: the thought in grey, the answer in black.
type Delta = { content?: string; reasoning?: string };

export function print(delta: Delta): void {
  if (delta.reasoning) process.stdout.write(`\x1b[90m${delta.reasoning}\x1b[0m`);
  if (delta.content) process.stdout.write(delta.content);
}
