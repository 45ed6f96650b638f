// What the source says: the exports of the entry points, their members, signatures and doc comments.
import { relative } from 'node:path';
// The compiler that tsd uses. The API of `typescript` 7 has no type checker yet.
import ts from '@tsd/typescript';
import { root } from '../steps.mjs';
import { isOfLib, isSource, pathOf, referencesIn, TypeTexts } from './type-texts.mjs';

/** `files`: paths below lib/, or of packages/. */
export function openSource(files) {
  const options = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    baseUrl: root,
    paths: { numalign: ['lib/index.ts'], 'numalign/*': ['lib/entries/*.ts'] },
  };
  const program = ts.createProgram(files.map(pathOf), options);
  return new Source(program);
}

export class Source {
  #program;
  // By their paths: the compiler's order follows from imports.
  #files;
  #checker;
  #types;
  #named;

  constructor(program) {
    this.#program = program;
    this.#checker = program.getTypeChecker();
    this.#files = program
      .getSourceFiles()
      .filter(isSource)
      .sort((a, b) => (a.fileName < b.fileName ? -1 : 1));
    this.#types = new TypeTexts(this.#checker, this.#files);
  }

  /** What the reference describes keeps its name in types. */
  markExported(list) {
    this.#types.markExported(list.map(({ symbol }) => symbol));
  }

  /** The exports of a file below lib/, by name, each as {@link describe} has it. */
  exportsOf(file) {
    const module = this.#checker.getSymbolAtLocation(this.#program.getSourceFile(pathOf(file)));
    return this.#checker
      .getExportsOfModule(module)
      .map((symbol) => this.#describe(symbol))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** A declaration of a file below lib/, exported or not. */
  declaration(file, name) {
    const source = this.#program.getSourceFile(pathOf(file));
    const node = source.statements
      .flatMap((statement) => statement.declarationList?.declarations ?? [statement])
      .find((each) => each.name?.text === name);
    if (!node) throw new Error(`lib/${file} declares no ${name}`);
    return this.#describe(this.#checker.getSymbolAtLocation(node.name));
  }

  /** The names of the members of a union of interfaces, in its order. */
  partsOf(file, name) {
    const { node } = this.declaration(file, name);
    return node.type.types.map(({ typeName }) => this.#describe(this.#checker.getSymbolAtLocation(typeName)));
  }

  #describe(exported) {
    const symbol =
      exported.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(exported) : exported;
    const nodes = (symbol.declarations ?? []).filter(isOfLib);
    const node = nodes[0] ?? exported.declarations[0];
    const shape = this.#shapeOf(symbol, node);
    return {
      name: exported.name,
      symbol,
      node,
      shape,
      kind: shape ? 'class' : kindOf(node, symbol),
      file: relative(root, node.getSourceFile().fileName),
      doc: nodes.map(docOf).find(Boolean) ?? '',
    };
  }

  /** The interface of a class whose instances are a union: `Code extends ErrorCode ? OneOf<Code> : never`. */
  #shapeOf(symbol, node) {
    const isUnion = ts.isTypeAliasDeclaration(node) && ts.isConditionalTypeNode(node.type);
    if (!isUnion || !symbol.valueDeclaration) return undefined;
    return this.#checker.getSymbolAtLocation(node.type.trueType.typeName);
  }

  /** What a class, an interface or the type of a constant has; `isStatic`: of the class itself. */
  membersOf({ symbol, node, shape }, isStatic = false) {
    const type =
      isStatic || ts.isVariableDeclaration(node)
        ? this.#checker.getTypeOfSymbol(symbol)
        : this.#checker.getDeclaredTypeOfSymbol(shape ?? symbol);
    return type
      .getProperties()
      .filter(({ name, declarations = [] }) => name !== 'prototype' && declarations.some(isMember))
      .map((member) => this.#member(member));
  }

  /** The members that an interface declares itself, and before them those from a table of options. */
  ownMembersOf(described) {
    const members = this.membersOf(described);
    const declares = (test) => members.filter(({ symbol }) => symbol.declarations.some(test));
    return [
      ...(isOfTable(described) ? declares(ts.isPropertyAssignment) : []),
      ...declares(({ parent }) => parent === described.node),
    ];
  }

  #member(symbol) {
    const nodes = symbol.declarations.filter(isMember);
    const doc = nodes.map(docOf).find(Boolean) ?? this.#docInBase(symbol, nodes[0]);
    const callable = nodes.filter((node) => isCallable(node));
    // Of overloads the last declaration is the implementation.
    const overloads = callable.length > 1 ? callable.filter(({ body }) => !body) : callable;
    const name = nameOf(nodes[0]);
    return {
      name,
      symbol,
      doc,
      isMethod: overloads.length > 0,
      // Every option of a table can be left out.
      isOptional: nodes.some((node) => node.questionToken || ts.isPropertyAssignment(node)),
      signatures: overloads.map((node) => this.signature(node.questionToken ? `${name}?` : name, node)),
      type: overloads.length > 0 ? '' : this.#types.ofSymbol(symbol, nodes),
    };
  }

  /**
   * The doc comment of the member that a member overrides, or that it hands its calls on to: such a
   * class implements what is picked of classes that no entry exports.
   */
  #docInBase({ name }, { parent }) {
    if (!ts.isClassDeclaration(parent)) return '';
    const bases = [
      ...this.#checker.getBaseTypes(this.#checker.getTypeAtLocation(parent)),
      ...this.#pickedBy(parent).filter(({ symbol }) => !this.#types.isExported(symbol)),
    ];
    const members = bases.flatMap((base) => base.getProperty(name) ?? []);
    return this.docsOf(members.flatMap(({ declarations = [] }) => declarations))[0] ?? '';
  }

  #pickedBy({ heritageClauses = [] }) {
    const types = heritageClauses.flatMap((clause) => clause.types);
    const picks = types.filter(({ expression }) => expression.getText() === 'Pick');
    return picks.map(({ typeArguments }) => this.#checker.getTypeFromTypeNode(typeArguments[0]));
  }

  /** The signatures of a function, of overloads all but the implementation. */
  signaturesOf({ name, symbol }) {
    return this.overloadsOf({ symbol }).map((node) => this.signature(name, node));
  }

  /** The declarations of a function that its callers see. */
  overloadsOf({ symbol }) {
    const nodes = symbol.declarations.filter(ts.isFunctionDeclaration);
    return nodes.length > 1 ? nodes.filter(({ body }) => !body) : nodes;
  }

  /** An interface or a type of lib/ by its name, exported from an entry or not. */
  find(name) {
    return this.#namedTypes().find((each) => each.name === name);
  }

  /** The interfaces and types of lib/ that have a description of their own. */
  describedTypes() {
    return this.#namedTypes().filter(
      ({ name, doc, node }) => doc !== '' && !node.typeParameters && !UNNAMED.includes(name),
    );
  }

  /** Those of {@link describedTypes} that the members of an export, or its own declaration, name. */
  typesNamedBy({ node, symbol, kind }, members) {
    const alone = kind === 'function' ? this.overloadsOf({ symbol }) : [node];
    const declared = members.length > 0 ? members.flatMap((each) => each.symbol.declarations) : alone;
    const named = declared.flatMap((each) => typeNodesOf(each).flatMap(referencesIn));
    const symbols = new Set(named.map(({ typeName }) => this.#types.symbolOf(typeName)));
    // A row of a table, and what is inferred, has no type of its own to look at.
    const inferred = members.filter((each) => each.symbol.declarations.every(isWithoutType));
    const words = new Set(inferred.flatMap(({ type }) => Source.namesIn(type)));
    return this.describedTypes().filter((each) => symbols.has(each.symbol) || words.has(each.name));
  }

  #namedTypes() {
    const isType = (statement) =>
      ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement);
    this.#named ??= this.#files
      .flatMap(({ statements }) => statements.filter(isType))
      .map(({ name }) => this.#describe(this.#checker.getSymbolAtLocation(name)));
    return this.#named;
  }

  /**
   * What an interface extends: the name of the other one, and which of its members it takes or
   * leaves out.
   */
  basesOf({ node }) {
    return (node.heritageClauses ?? []).flatMap((clause) =>
      clause.types.filter(isNoTable).map(({ expression, typeArguments = [] }) => {
        const name = expression.getText();
        const [base, keys] = typeArguments;
        if (name !== 'Omit' && name !== 'Pick') return { name, isOfNode: !this.#isOfLib(expression) };
        const chosen = [...keys.getText().matchAll(/'([^']+)'/g)].map(([, key]) => key);
        const [nested, more] = base.typeArguments ?? [];
        if (nested === undefined)
          return { name: base.getText(), [name === 'Omit' ? 'without' : 'only']: chosen };
        const outer = [...more.getText().matchAll(/'([^']+)'/g)].map(([, key]) => key);
        return { name: nested.getText(), without: [...outer, ...chosen] };
      }),
    );
  }

  /** The exports in `places` whose members a class or an interface has too. */
  basesAmong({ symbol, node, kind, shape }, places) {
    if (shape) return this.#basesOfShape(shape, places);
    if (kind === 'interface')
      return this.basesOf({ node })
        .filter(({ name, isOfNode }) => places.has(name) && !isOfNode)
        .map(({ name }) => this.find(name));
    const [base] = this.#checker.getBaseTypes(this.#checker.getDeclaredTypeOfSymbol(symbol));
    const declared = base?.symbol.declarations?.[0];
    if (!declared || !ts.isClassDeclaration(declared) || !isOfLib(declared)) return [];
    const described = this.#describe(base.symbol);
    return places.has(described.name) ? [described] : this.basesAmong(described, places);
  }

  /** Those of {@link basesAmong} that have the interface which a shape extends. */
  #basesOfShape(shape, places) {
    const { heritageClauses = [] } = shape.declarations[0];
    const bases = heritageClauses.flatMap(({ types }) => types.map(({ expression }) => expression));
    const symbols = bases.map((base) => this.#checker.getSymbolAtLocation(base));
    const isOf = (symbol) =>
      symbol?.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol;
    return this.#namedTypes().filter(
      (each) => places.has(each.name) && each.shape && symbols.map(isOf).includes(each.shape),
    );
  }

  /** Whether a class implements the members of another one of lib/. */
  implementsAnother({ node }) {
    const clauses = node.heritageClauses ?? [];
    const isImplementing = ({ token }) => token === ts.SyntaxKind.ImplementsKeyword;
    return clauses.some((clause) => isImplementing(clause) && /^Same|Pick/.test(clause.types[0].getText()));
  }

  #isOfLib(expression) {
    const { symbol } = this.#checker.getTypeAtLocation(expression);
    return (symbol?.declarations ?? []).some(isOfLib);
  }

  /** The doc comments of declarations that have one. */
  docsOf(nodes) {
    return nodes.map(docOf).filter(Boolean);
  }

  /** The type of a constant, as far as it fits on a line. */
  typeOfConstant({ symbol, node }) {
    return this.#types.ofSymbol(symbol, [node]);
  }

  /** What a type is an alias of. */
  typeOfAlias({ node }) {
    return this.#types.of(node.type);
  }

  signature(name, node) {
    return this.#types.signature(name, node);
  }

  /** The names of the types that a text of a declaration names. */
  static namesIn(text) {
    return [...text.matchAll(/\b[A-Z]\w+/g)].map(([name]) => name);
  }
}

// What reads better written out, is opaque, or has a section on another page.
const UNNAMED = [
  'ErrorCodes',
  'Fields',
  'RejectionFact',
  'Words',
  'TopologyHandle',
  'ChildVariables',
  'PoolPlace',
];

// `extends OptionsOf<typeof TABLE>`
const isNoTable = ({ expression }) => expression.getText() !== 'OptionsOf';

const isOfTable = ({ node }) => (node.heritageClauses ?? []).some((clause) => !clause.types.every(isNoTable));

/** The types that a declaration writes. */
const typeNodesOf = ({ type, parameters = [] }) =>
  [type, ...parameters.map((each) => each.type)].filter(Boolean);

const isWithoutType = (node) => typeNodesOf(node).length === 0;

function nameOf(node) {
  const text = node.name.getText();
  return ts.isStringLiteral(node.name) ? node.name.text : text;
}

function isCallable(node) {
  return ts.isMethodDeclaration(node) || ts.isMethodSignature(node);
}

function isMember(node) {
  if (!isOfLib(node) || !node.name || ts.isPrivateIdentifier(node.name)) return false;
  const flags = ts.getCombinedModifierFlags(node);
  if (flags & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) return false;
  return !(ts.isComputedPropertyName(node.name) && /inspect|iterator|hasInstance/.test(node.name.getText()));
}

function kindOf(node, symbol) {
  if (ts.isClassDeclaration(node)) return 'class';
  if (ts.isInterfaceDeclaration(node)) return 'interface';
  if (ts.isTypeAliasDeclaration(node)) return 'type';
  if (ts.isFunctionDeclaration(node)) return 'function';
  // A member of another module that an entry exports by its name.
  if (ts.isBindingElement(node)) return 'member';
  return symbol.valueDeclaration ? 'constant' : 'type';
}

/** The text of a doc comment, without its stars; empty where there is none. */
function docOf(node) {
  const at = ts.isVariableDeclaration(node) ? node.parent.parent : node;
  const comment = at.jsDoc?.at(-1)?.getText() ?? '';
  return comment
    .replace(/^\/\*\*|\*\/$/g, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, ''))
    .join('\n')
    .trim();
}
