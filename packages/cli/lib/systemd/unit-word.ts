// Escapes texts for systemd units. Pure.

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '"': '\\"', '\\': '\\\\' };

// By bytes: systemd does not accept every character by its number.
const escaped = (character: string) =>
  ESCAPES[character] ??
  [...Buffer.from(character)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');

/** The text with `%` as a plain character, not a specifier. */
export const literal = (text: string) => text.replaceAll('%', '%%');

/**
 * The text as one word of a command line, in which systemd replaces no variable and no specifier.
 */
export function commandWord(text: string): string {
  return unitWord(literal(text.replaceAll('$', '$$$$')));
}

/** The path of the program: systemd replaces no variable in the first word. */
export const programWord = (path: string) => unitWord(literal(path));

/** One word with specifiers, quoted if needed. */
export function unitWord(text: string): string {
  if (/^[\w./:@%+=,$~^-]+$/.test(text)) return text;
  return `"${text.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, escaped)}"`;
}

/** True if systemd reads a value of one line unchanged. Such a value cannot be escaped. */
export const isPlainValue = (text: string) => /^(?!\s)[^\p{C}\p{Zl}\p{Zp}]+(?<![\s\\])$/u.test(text);
