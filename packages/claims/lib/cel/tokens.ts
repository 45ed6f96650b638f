// Tokens: the words of an expression in the Common Expression Language.

/** What is wrong with an expression, and where. */
export class CelError extends Error {
  constructor(
    message: string,
    /** The offset in the text. */
    readonly at: number,
  ) {
    super(message);
    this.name = 'CelError';
  }
}

export interface Token {
  readonly kind: 'number' | 'text' | 'name' | 'sign' | 'end';
  /** As it is written. */
  readonly text: string;
  readonly at: number;
}

/** The limit of Kubernetes for a selector. */
export const MOST_CHARACTERS = 10_240;

const KINDS: readonly (readonly [Token['kind'] | 'space', RegExp])[] = [
  ['space', /(?:\s|\/\/[^\n]*)+/y],
  ['text', /[rR](?:"{3}[\s\S]*?"{3}|'{3}[\s\S]*?'{3}|"[^"\r\n]*"|'[^'\r\n]*')/y],
  [
    'text',
    /"{3}(?:\\[\s\S]|[^\\])*?"{3}|'{3}(?:\\[\s\S]|[^\\])*?'{3}|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'/y,
  ],
  ['number', /0[xX][\da-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+|\d+(?=[eE][-+]?\d))(?:[eE][-+]?\d+)?|\d+[uU]?/y],
  ['name', /[A-Za-z_]\w*/y],
  ['sign', /==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()[\]{}]/y],
];

export function tokensOf(text: string): Token[] {
  if (text.length > MOST_CHARACTERS)
    throw new CelError(`it is longer than ${MOST_CHARACTERS} characters`, MOST_CHARACTERS);
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; ) {
    const found = KINDS.map(([kind, pattern]) => ({ kind, word: wordAt(pattern, text, at) }));
    const token = found.find(({ word }) => word !== undefined);
    if (!token) throw new CelError(`${JSON.stringify(text[at])} is no part of an expression`, at);
    if (token.kind !== 'space') tokens.push({ kind: token.kind, text: token.word!, at });
    at += token.word!.length;
  }
  return [...tokens, { kind: 'end', text: '', at: text.length }];
}

function wordAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '?': '?',
  '"': '"',
  "'": "'",
  '`': '`',
};
const ESCAPE =
  /\\(?:x([\da-fA-F]{2})|X([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-3][0-7]{2})|([\s\S]?))/g;

/** What a text in quotes says. */
export function textOf({ text, at }: Token): string {
  const isRaw = /^[rR]/.test(text);
  const [, quotes] = /^[rR]?("""|'''|"|')/.exec(text)!;
  const inner = text.slice((isRaw ? 1 : 0) + quotes!.length, -quotes!.length);
  if (isRaw) return inner;
  return inner.replace(ESCAPE, (whole, x, X, u, U, octal, letter) => {
    const hex: string | undefined = x ?? X ?? u ?? U;
    if (hex !== undefined || octal !== undefined) {
      const code = Number.parseInt(hex ?? octal, hex === undefined ? 8 : 16);
      if (code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)) return String.fromCodePoint(code);
    } else if (Object.hasOwn(ESCAPES, letter)) return ESCAPES[letter]!;
    throw new CelError(`${whole} is no escape`, at);
  });
}
