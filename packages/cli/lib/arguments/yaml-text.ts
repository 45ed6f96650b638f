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
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  Parser,
  type Scalar,
  visit,
  type YAMLMap,
} from 'yaml';

// Deeper than any manifest. The library recurses: at some thousand levels V8 has no stack left to
// compile a regular expression, which ends the process without an error that could be caught.
const MAX_DEPTH = 200;

/** A place in a text, counted from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A document with the places of its fields. */
export class YamlDocument {
  readonly value: unknown;
  /** The line of its first value. */
  readonly line: number;
  readonly #document: Document.Parsed;
  readonly #lines: LineCounter;

  /** Use {@link YamlText.documents}. */
  constructor(value: unknown, document: Document.Parsed, lines: LineCounter) {
    this.value = value;
    this.line = lines.linePos(document.contents?.range[0] ?? 0).line;
    this.#document = document;
    this.#lines = lines;
  }

  /** The place of a field such as `spec.containers[0].name`, or of what it would be in. */
  positionOf(field: string): Position {
    const { line, col } = this.#lines.linePos(this.#offsetOf(field));
    return { line, column: col };
  }

  // A name may have dots too: `limits.example.com/gpu`.
  #offsetOf(field: string): number {
    let node: unknown = this.#document.contents;
    let offset = this.#document.contents?.range[0] ?? 0;
    for (let rest = field; rest !== ''; ) {
      if (isAlias(node)) node = node.resolve(this.#document);
      const [index, i] = /^\[(\d+)\]\.?/.exec(rest) ?? [];
      if (index !== undefined) {
        node = isSeq(node) ? node.items[Number(i)] : undefined;
        if (!isNode(node)) break;
        offset = node.range?.[0] ?? offset;
        rest = rest.slice(index.length);
        continue;
      }
      const pair = isMap(node) ? pairAt(node, rest) : undefined;
      if (!pair) break;
      offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
      rest = rest.slice(String(pair.key.value).length).replace(/^\./, '');
    }
    return offset;
  }
}

// The longest key that the field begins with.
function pairAt({ items }: YAMLMap, field: string): Pair<Scalar, unknown> | undefined {
  const isFirst = (key: unknown) => {
    const name = isScalar(key) ? String(key.value) : undefined;
    return name !== undefined && field.startsWith(name) && /^([.[]|$)/.test(field.slice(name.length));
  };
  const length = ({ key }: Pair) => String((key as Scalar).value).length;
  const [longest] = items.filter(({ key }) => isFirst(key)).sort((a, b) => length(b) - length(a));
  return longest as Pair<Scalar, unknown> | undefined;
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
      .map((document) => new YamlDocument(this.#value(document), document, this.#lines))
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
