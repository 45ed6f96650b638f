// YAML (and so JSON) as text -> plain values, as Kubernetes reads it. It comes from elsewhere:
// nothing in it may run, hang or exhaust us.
import {
  Composer,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  visit,
  type YAMLMap,
} from 'yaml';
import { NumalignError } from '../../base/errors.js';

// Deeper than any manifest. The library recurses: some thousand levels deep V8 has no stack left to
// compile a regular expression, which ends the process and is no error that could be caught.
const MAX_DEPTH = 200;

export interface YamlDocument {
  readonly value: unknown;
  /** Of its first value. */
  readonly line: number;
}

/** The text of a file, and where in it something is wrong. */
export class YamlText {
  readonly #name: string;
  readonly #text: string;
  readonly #lines = new LineCounter();

  /** `name`: of the file, for messages. */
  constructor(name: string, text: string) {
    this.#name = name;
    this.#text = text;
  }

  /**
   * Its documents, less those that are empty.
   * @throws ERR_INVALID_ARGUMENT, with line and column
   */
  documents(): YamlDocument[] {
    const composer = new Composer({
      merge: true,
      resolveKnownTags: false,
      stringKeys: true,
      uniqueKeys: false,
    });
    const documents = [...composer.compose(this.#tokens(), true, this.#text.length)];
    return documents
      .map((document) => ({
        value: this.#value(document),
        line: this.#lines.linePos(document.contents?.range[0] ?? 0).line,
      }))
      .filter(({ value }) => value !== null);
  }

  *#tokens() {
    const parser = new Parser(this.#lines.addNewLine);
    this.#lines.addNewLine(0);
    for (const lexeme of new Lexer().lex(this.#text)) {
      yield* parser.next(lexeme);
      if (parser.stack.length > MAX_DEPTH)
        throw this.#error(parser.offset, `nested deeper than ${MAX_DEPTH} levels`);
    }
    yield* parser.end();
  }

  #value(document: Document.Parsed): unknown {
    // Warnings too: they report unknown tags, which would change the value.
    const [wrong] = [...document.errors, ...document.warnings];
    if (wrong) throw this.#error(wrong.pos[0], wrong.message);
    const anchored = new Map<string, Node>();
    visit(document, (_, node, path) => {
      if (isAlias(node)) {
        const { source, range } = node;
        const meant = anchored.get(source);
        if (!meant) throw this.#error(range?.[0], `no &${source} comes before this alias`);
        if (path.includes(meant))
          throw this.#error(range?.[0], `this alias is inside of &${source}, which has no end`);
        return;
      }
      if (isMap(node)) this.#checkKeys(node);
      // Kubernetes reads 010 as YAML 1.1 does.
      if (isScalar(node) && typeof node.value === 'number' && /^[-+]?0[0-7]+$/.test(node.source ?? '')) {
        node.value = Number.parseInt(node.source!, 8);
      }
      if (isNode(node) && node.anchor !== undefined) anchored.set(node.anchor, node);
    });
    try {
      return document.toJS();
    } catch (error) {
      // Aliases that multiply beyond what memory holds.
      throw this.#error(document.contents?.range[0], (error as Error).message);
    }
  }

  // The library's own check compares each key with every other.
  #checkKeys({ items }: YAMLMap): void {
    const keys = new Set<string>();
    for (const { key } of items) {
      if (!isScalar(key)) continue;
      const name = String(key.value);
      if (keys.has(name)) throw this.#error(key.range?.[0], `"${name}" is there twice`);
      keys.add(name);
    }
  }

  #error(offset: number | undefined, message: string): NumalignError {
    const { line, col } = this.#lines.linePos(Math.min(offset ?? 0, this.#text.length));
    const place = `${this.#name}, line ${line}, column ${col}`;
    return new NumalignError('ERR_INVALID_ARGUMENT', `${place}: ${message}`, {
      value: this.#name,
      line,
      column: col,
    });
  }
}
