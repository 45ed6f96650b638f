// Parser: the whole grammar of the Common Expression Language, so that what is wrong differs from
// what is only not evaluated here.
import { BINARY_LEVELS, type BinaryOperator, type Expression, type Literal } from './expression.js';
import { CelError, type Token, textOf, tokensOf } from './tokens.js';

// Kubernetes allows 250 levels.
const DEEPEST = 250;
const RESERVED = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);
const LITERALS: Readonly<Record<string, Literal>> = { true: true, false: false, null: null };
const MOST_INT = 2n ** 63n - 1n;

/** @throws CelError */
export function parseCel(text: string): Expression {
  const parser = new Parser(tokensOf(text));
  return parser.whole();
}

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): Expression {
    const expression = this.#expression();
    if (this.#token.kind !== 'end') this.#fail('the end');
    return expression;
  }

  get #token(): Token {
    return this.#tokens[this.#next]!;
  }

  #fail(expected: string): never {
    const { kind, text, at } = this.#token;
    throw new CelError(`${kind === 'end' ? 'the end' : text} is where ${expected} should be`, at);
  }

  #is(...texts: readonly string[]): boolean {
    const { kind, text } = this.#token;
    return kind !== 'text' && texts.includes(text) && kind !== 'end';
  }

  #take(): Token {
    return this.#tokens[this.#next++]!;
  }

  /** Whether the next token is this one, which it takes. */
  #skip(text: string): boolean {
    const isNext = this.#is(text);
    if (isNext) this.#next++;
    return isNext;
  }

  #expect(text: string): void {
    if (!this.#skip(text)) this.#fail(text);
  }

  #deeper<T>(parse: () => T): T {
    if (++this.#depth > DEEPEST)
      throw new CelError(`it is nested deeper than ${DEEPEST} levels`, this.#token.at);
    const result = parse();
    this.#depth--;
    return result;
  }

  #expression(): Expression {
    return this.#deeper(() => {
      const condition = this.#binary(0);
      if (!this.#is('?')) return condition;
      const { at } = this.#take();
      const then = this.#binary(0);
      this.#expect(':');
      return { kind: 'other', at, what: 'the choice ? :', parts: [condition, then, this.#expression()] };
    });
  }

  #binary(level: number): Expression {
    const operators: readonly string[] | undefined = BINARY_LEVELS[level];
    if (!operators) return this.#unary();
    let left = this.#binary(level + 1);
    while (this.#is(...operators)) {
      const { text, at } = this.#take();
      left = { kind: 'binary', at, operator: text as BinaryOperator, left, right: this.#binary(level + 1) };
    }
    return left;
  }

  #unary(): Expression {
    if (!this.#is('!', '-')) return this.#member();
    return this.#deeper(() => {
      const { text, at } = this.#take();
      const of = this.#unary();
      const isNumber =
        of.kind === 'literal' && (typeof of.value === 'bigint' || typeof of.value === 'number');
      if (text === '-' && isNumber) return { ...of, at, value: -(of.value as number) };
      return { kind: 'unary', at, operator: text as '!' | '-', of };
    });
  }

  #member(): Expression {
    let of = this.#primary();
    for (;;) {
      const { at } = this.#token;
      if (this.#skip('.')) of = this.#selected(of, at);
      else if (this.#skip('[')) of = this.#indexed(of, at);
      else if (this.#is('{')) of = { kind: 'other', at, what: 'a message', parts: [of, ...this.#entries()] };
      else return of;
    }
  }

  #selected(of: Expression, at: number): Expression {
    const isOptional = this.#skip('?');
    if (this.#token.kind !== 'name') this.#fail('a name');
    const name = this.#take().text;
    if (isOptional) return { kind: 'other', at, what: 'the optional member .?', parts: [of] };
    return this.#is('(')
      ? { kind: 'call', at, of, name, args: this.#args() }
      : { kind: 'member', at, of, name };
  }

  #indexed(of: Expression, at: number): Expression {
    const isOptional = this.#skip('?');
    const index = this.#expression();
    this.#expect(']');
    if (isOptional) return { kind: 'other', at, what: 'the optional index [?', parts: [of, index] };
    return { kind: 'index', at, of, index };
  }

  #args(): Expression[] {
    this.#expect('(');
    return this.#listUntil(')');
  }

  #listUntil(end: string): Expression[] {
    const items: Expression[] = [];
    while (!this.#skip(end)) {
      items.push(this.#expression());
      if (!this.#skip(',')) {
        if (!this.#is(end)) this.#fail(`, or ${end}`);
      } else if (end === ')' && this.#is(end)) this.#fail('an argument');
    }
    return items;
  }

  #entries(): Expression[] {
    this.#expect('{');
    const parts: Expression[] = [];
    while (!this.#skip('}')) {
      this.#skip('?');
      parts.push(this.#expression());
      this.#expect(':');
      parts.push(this.#expression());
      if (!this.#is('}')) this.#expect(',');
    }
    return parts;
  }

  #primary(): Expression {
    const { kind, text, at } = this.#token;
    if (this.#skip('(')) {
      const inner = this.#expression();
      this.#expect(')');
      return inner;
    }
    if (this.#skip('[')) return { kind: 'list', at, items: this.#listUntil(']') };
    if (this.#is('{')) return { kind: 'other', at, what: 'a map', parts: this.#entries() };
    this.#skip('.');
    if (kind === 'number') return this.#number();
    if (kind === 'text') return { kind: 'literal', at, value: textOf(this.#take()) };
    if (this.#token.kind !== 'name' || this.#is('in')) this.#fail('a value');
    return this.#named(this.#take(), text);
  }

  #named({ text: name, at }: Token, first: string): Expression {
    if (RESERVED.has(name)) throw new CelError(`${name} is reserved`, at);
    if (first !== '.' && Object.hasOwn(LITERALS, name))
      return { kind: 'literal', at, value: LITERALS[name]! };
    if (/^[bB][rR]?$|^[rR][bB]$/.test(name) && this.#token.kind === 'text') {
      this.#take();
      return { kind: 'other', at, what: 'bytes', parts: [] };
    }
    if (this.#is('(')) return { kind: 'call', at, of: null, name, args: this.#args() };
    return { kind: 'name', at, name };
  }

  #number(): Expression {
    const { text, at } = this.#take();
    if (/[uU]$/.test(text)) return { kind: 'other', at, what: 'unsigned numbers', parts: [] };
    if (!/^0[xX]/.test(text) && /[.eE]/.test(text)) return { kind: 'literal', at, value: Number(text) };
    const value = BigInt(text);
    // The least number is written as minus the greatest plus one.
    if (value > MOST_INT + 1n) throw new CelError(`${text} is greater than ${MOST_INT}`, at);
    return { kind: 'literal', at, value };
  }
}
