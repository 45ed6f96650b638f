// Texts as systemd reads them in a unit. Pure.

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '"': '\\"', '\\': '\\\\' };

const hex = (code: number, digits: number) => code.toString(16).padStart(digits, '0');

function escaped(character: string): string {
  const code = character.codePointAt(0)!;
  if (code < 0x80) return ESCAPES[character] ?? `\\x${hex(code, 2)}`;
  return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
}

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

/** Whether a value of one line is read back as it is: nothing in it can be escaped. */
export const isPlainValue = (text: string) => /^(?!\s)[^\p{C}\p{Zl}\p{Zp}]+(?<![\s\\])$/u.test(text);
