// Words of a command that a user types or a shell reads. Pure.

export const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * One word to a shell, whatever is in it: quoted where it would not be one as it is, such as
 * systemd's `foo\x2dbar.slice`.
 */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : quoted(text);
}
