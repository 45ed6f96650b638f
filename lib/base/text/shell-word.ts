// Words of a command that a user types or a shell reads. Pure.

export const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** The text as one word of a shell, quoted if needed, such as systemd's `foo\x2dbar.slice`. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : quoted(text);
}
