// Parses YAML, and so JSON, to plain values like Kubernetes. The text is not trusted: nothing in it
// may run code, hang or exhaust the process.
import { NumalignError } from 'numalign';
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

// Deeper than any manifest. The library recurses: at some thousand levels V8 has no stack left to
// compile a regular expression, which ends the process without an error that could be caught.
const MAX_DEPTH = 200;

export interface YamlDocument {
  readonly value: unknown;
  /** The line of its first value. */
  readonly line: number;
}

/** The text of a YAML file. Errors name the line and column. */
export class YamlText {
  readonly #name: string;
  readonly #text: string;
  readonly #lines = new LineCounter();

  /** `name`: the file's name in messages. */
  constructor(name: string, text: string) {
    this.#name = name;
    this.#text = text;
  }

  /** Its documents without empty ones. @throws ERR_INVALID_ARGUMENT, with line and column */
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
    const [problem] = [...document.errors, ...document.warnings];
    if (problem) throw this.#error(problem.pos[0], problem.message);
    const nodeOfAnchor = new Map<string, Node>();
    visit(document, (_, node, path) => {
      if (isAlias(node)) {
        const { source, range } = node;
        const target = nodeOfAnchor.get(source);
        if (!target) throw this.#error(range?.[0], `no &${source} comes before this alias`);
        if (path.includes(target))
          throw this.#error(range?.[0], `this alias is inside of &${source}: it would never end`);
        return;
      }
      if (isMap(node)) this.#checkKeys(node);
      // Kubernetes reads 010 as octal, like YAML 1.1.
      if (isScalar(node) && typeof node.value === 'number' && /^[-+]?0[0-7]+$/.test(node.source ?? '')) {
        node.value = Number.parseInt(node.source!, 8);
      }
      if (isNode(node) && node.anchor !== undefined) nodeOfAnchor.set(node.anchor, node);
    });
    try {
      return document.toJS();
    } catch (error) {
      // Aliases that multiply without bounds.
      throw this.#error(document.contents?.range[0], (error as Error).message);
    }
  }

  // The library's own check compares each key with every other.
  #checkKeys({ items }: YAMLMap): void {
    const keys = new Set<string>();
    for (const { key } of items) {
      if (!isScalar(key)) continue;
      const name = String(key.value);
      if (keys.has(name)) throw this.#error(key.range?.[0], `"${name}" is a duplicate key`);
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
