// GoJson: a JSON text as Go's encoding/json parses it. It keeps the order of members, repeated
// keys, and numbers as written. Pure.

/** A number as written: it may exceed a JavaScript number. */
export class GoNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** An object's members in order; keys may repeat. */
export class GoObject {
  readonly members: (readonly [key: string, value: GoJson])[] = [];
}

export type GoJson = null | boolean | string | GoNumber | GoJson[] | GoObject;

// Go has the same limit.
const MAX_DEPTH = 10_000;

const TOKEN = /[{}[\],:"]|-?\d[\d.eE+-]*|true|false|null/y;
const SPACE = /[ \t\r\n]*/y;

function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    let before = quote - 1;
    while (text[before] === '\\') before--;
    at = quote + 1;
    if ((quote - before) % 2 === 1) return at;
  }
}

/** Replaces lone surrogates by U+FFFD, as Go does. */
function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}

/**
 * Parses a text.
 * @throws SyntaxError if it is not JSON, RangeError if it is nested deeper than Go reads
 */
export function parseGoJson(text: string): GoJson {
  // The grammar is the same, so the code below need not look for mistakes.
  JSON.parse(text);
  const open: (GoJson[] | GoObject)[] = [];
  let [result, key, at]: [GoJson, string | undefined, number] = [null, undefined, 0];

  const put = (value: GoJson) => {
    const parent = open.at(-1);
    if (parent instanceof GoObject) parent.members.push([key!, value]);
    else if (parent) parent.push(value);
    else result = value;
    key = undefined;
  };
  const begin = (value: GoJson[] | GoObject) => {
    put(value);
    if (open.push(value) > MAX_DEPTH) throw new RangeError(`it is nested deeper than ${MAX_DEPTH} levels`);
  };
  const string = (value: string) => {
    if (open.at(-1) instanceof GoObject && key === undefined) key = value;
    else put(value);
  };

  for (;;) {
    SPACE.lastIndex = at;
    SPACE.exec(text);
    TOKEN.lastIndex = SPACE.lastIndex;
    const token = TOKEN.exec(text)?.[0];
    if (token === undefined) return result;
    at = TOKEN.lastIndex;
    if (token === '{') begin(new GoObject());
    else if (token === '[') begin([]);
    else if (token === '}' || token === ']') open.pop();
    else if (token === '"') {
      const start = at - 1;
      at = endOfString(text, start);
      string(wellFormed(JSON.parse(text.slice(start, at)) as string));
    } else if (token === 'null') put(null);
    else if (token === 'true' || token === 'false') put(token === 'true');
    else if (token !== ',' && token !== ':') put(new GoNumber(token));
  }
}
