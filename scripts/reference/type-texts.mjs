// TypeTexts: types and signatures as their declarations write them. What a reader cannot look up in
// the reference is written out.
import ts from '@tsd/typescript';
import { root } from '../steps.mjs';

const LIB = `${root}lib/`;
const SOURCES = [LIB, ...['metrics', 'page'].map((name) => `${root}packages/${name}/lib/`)];

/** The path of a file below lib/, or of one of packages/. */
export const pathOf = (file) => (file.startsWith('packages/') ? root : LIB) + file;

export const isSource = ({ fileName }) => SOURCES.some((folder) => fileName.startsWith(folder));

export const isOfLib = (node) => isSource(node.getSourceFile());

const WRITTEN_OUT =
  ts.TypeFormatFlags.NoTruncation |
  ts.TypeFormatFlags.InTypeAlias |
  ts.TypeFormatFlags.UseSingleQuotesForStringLiteralType |
  ts.TypeFormatFlags.UseAliasDefinedOutsideCurrentScope;

export const textOf = (node) =>
  node
    .getText()
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/;? \}/g, ' }')
    .replace(/^\| /, '');

export class TypeTexts {
  #checker;
  #exported = new Set();
  #aliases = new Map();
  #wordLists;

  /** `files`: those of the source, in an order that is always the same. */
  constructor(checker, files) {
    this.#checker = checker;
    this.#wordLists = wordListsIn(files);
  }

  /** Names that the reference describes. */
  markExported(symbols) {
    for (const symbol of symbols) {
      this.#exported.add(symbol);
      const [node] = symbol.declarations ?? [];
      const list = node && ts.isTypeAliasDeclaration(node) && node.type.objectType?.type?.exprName;
      if (list) this.#aliases.set(this.#declarationOf(list), symbol.name);
    }
  }

  isExported(symbol) {
    return this.#exported.has(symbol);
  }

  /** The text of a type. */
  of(node) {
    if (hasPointer(node)) return this.#written(this.#checker.getTypeFromTypeNode(node));
    let text = textOf(node);
    for (const { typeName } of referencesIn(node)) {
      const alias = this.#hiddenAlias(typeName);
      if (!alias) continue;
      const inner = this.of(alias);
      const isOperand = new RegExp(`\\b${typeName.text}\\[|readonly ${typeName.text}`).test(text);
      const shown = isOperand && inner.includes(' | ') ? `(${inner})` : inner;
      text = text.replace(new RegExp(`\\b${typeName.text}\\b`, 'g'), () => shown);
    }
    return text;
  }

  /** The type of a member or a constant. */
  ofSymbol(symbol, nodes) {
    const typed = nodes.find(({ type }) => type);
    if (typed) return this.of(typed.type);
    const text = () => this.#written(this.#checker.getTypeOfSymbol(symbol));
    // Every option of a table can be left out.
    return ts.isPropertyAssignment(nodes[0])
      ? (this.#ofRow(nodes[0]) ?? text().replace(/ \| undefined$/, ''))
      : text();
  }

  // What an option of a table takes: the first parameter of the check's type, or the type of the
  // words in its list.
  #ofRow({ initializer }) {
    if (!ts.isCallExpression(initializer)) return undefined;
    if (initializer.typeArguments) return this.of(initializer.typeArguments[0]);
    const check = initializer.arguments[0].properties?.find(({ name }) => name.getText() === 'check');
    if (!check) return undefined;
    const { initializer: value = check.name } = check;
    if (ts.isCallExpression(value)) return this.#aliases.get(this.#declarationOf(value.arguments[0]));
    const [given] = this.#declarationOf(value).type.typeArguments;
    return this.of(given);
  }

  /** The symbol that a name stands for, where it is declared. */
  symbolOf(name) {
    const symbol = this.#checker.getSymbolAtLocation(name);
    return symbol && symbol.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }

  #declarationOf(name) {
    return this.symbolOf(name)?.declarations[0];
  }

  signature(name, node) {
    const parameters = node.parameters.map((parameter) => {
      const isOptional = parameter.initializer || parameter.questionToken;
      const dots = parameter.dotDotDotToken ? '...' : '';
      return `${dots}${parameterName(parameter)}${isOptional ? '?' : ''}: ${this.#parameterType(parameter)}`;
    });
    const generics = node.typeParameters ? `<${node.typeParameters.map(textOf).join(', ')}>` : '';
    return `${name}${generics}(${parameters.join(', ')}): ${this.#returnOf(node)}`;
  }

  #parameterType(node) {
    return node.type ? this.of(node.type) : this.#written(this.#checker.getTypeAtLocation(node));
  }

  // The shape of an inferred object is in the text of its members.
  #returnOf(node) {
    if (node.type) return this.of(node.type);
    const signature = this.#checker.getSignatureFromDeclaration(node);
    const text = this.#written(this.#checker.getReturnTypeOfSignature(signature));
    return text.startsWith('{') ? 'object' : text;
  }

  #written(type) {
    const text = this.#checker.typeToString(type, undefined, WRITTEN_OUT);
    return text.replace(UNION_OF_WORDS, (union) => this.#inOrder(union.split(' | ')).join(' | '));
  }

  // The compiler orders a union by when it first met each word, which follows from imports: here they
  // are in the order of the shortest list of the source that has them all.
  #inOrder(words) {
    const list = this.#wordLists.find((each) => words.every((word) => each.includes(word)));
    return list ? list.filter((word) => words.includes(word)) : words.sort();
  }

  #hiddenAlias(name) {
    const symbol = this.symbolOf(name);
    const [alias] = symbol?.declarations ?? [];
    if (this.#exported.has(symbol) || !alias || !ts.isTypeAliasDeclaration(alias)) return undefined;
    return isOfLib(alias) && !alias.typeParameters ? alias.type : undefined;
  }
}

const UNION_OF_WORDS = /'[^']*'(?: \| '[^']*')+/g;

/** The unions of words in the source, constant lists of words, and keys of constant objects. */
function wordListsIn(files) {
  const lists = [];
  const visit = (node) => {
    const words = wordsOf(node);
    if (words.length > 1 && words.every(Boolean)) lists.push(words);
    ts.forEachChild(node, visit);
  };
  files.forEach(visit);
  return lists.sort((a, b) => a.length - b.length);
}

const quoted = (node) => node && ts.isStringLiteral(node) && `'${node.text}'`;

function wordsOf(node) {
  if (ts.isUnionTypeNode(node)) return node.types.map(({ literal }) => quoted(literal)).filter(Boolean);
  if (!ts.isVariableDeclaration(node) || !node.initializer) return [];
  const bare = ts.skipOuterExpressions(node.initializer);
  const value = bare.expression?.getText() === 'Object.freeze' ? bare.arguments[0] : bare;
  if (ts.isArrayLiteralExpression(value)) return value.elements.map(quoted);
  if (!ts.isObjectLiteralExpression(value)) return [];
  return value.properties.map(({ name }) => name?.text && `'${name.text}'`);
}

// `(typeof LEVELS)[number]` and `Task['kind']` say nothing by themselves.
function isPointer(node) {
  if (ts.isTypeQueryNode(node) || node.operator === ts.SyntaxKind.KeyOfKeyword) return true;
  return ts.isIndexedAccessTypeNode(node) && ts.isLiteralTypeNode(node.indexType);
}

const hasPointer = (node) =>
  isPointer(node) || (ts.forEachChild(node, (child) => hasPointer(child) || undefined) ?? false);

/** The references to types in a type, but for those of which it shows a member alone. */
export function referencesIn(node) {
  if (isPointer(node)) return [];
  const found = ts.isTypeReferenceNode(node) ? [node] : [];
  ts.forEachChild(node, (child) => void found.push(...referencesIn(child)));
  return found;
}

// A parameter that is taken apart has no name: it is named by its type.
function parameterName({ name }) {
  return ts.isIdentifier(name) ? name.text : 'options';
}
