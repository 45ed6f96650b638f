// Words of a command that a user types or a shell reads. Pure.

/** The text in quotes of a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The text as one word of a shell, quoted if needed, such as systemd's `foo\x2dbar.slice`. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : quoted(text);
}
