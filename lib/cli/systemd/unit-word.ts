// Texts as systemd reads them in a unit. Pure.

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '"': '\\"', '\\': '\\\\' };

// By its bytes: systemd takes not every character for one by its number.
const escaped = (character: string) =>
  ESCAPES[character] ??
  [...Buffer.from(character)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');

/** A text in which `%` is no specifier. */
export const literal = (text: string) => text.replaceAll('%', '%%');

/** One word of a command line, whatever is in it: no variable and no specifier is replaced. */
export function commandWord(text: string): string {
  return unitWord(literal(text.replaceAll('$', '$$$$')));
}

/** The path of the program: no variable is replaced in the first word. */
export const programWord = (path: string) => unitWord(literal(path));

/** One word in which specifiers are: quoted where it would not be one as it is. */
export function unitWord(text: string): string {
  if (/^[\w./:@%+=,$~^-]+$/.test(text)) return text;
  return `"${text.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, escaped)}"`;
}

/** True if a value of one line is read back as it is: nothing in it can be escaped. */
export const isPlainValue = (text: string) => /^(?!\s)[^\p{C}\p{Zl}\p{Zp}]+(?<![\s\\])$/u.test(text);
