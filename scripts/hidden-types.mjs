// With `declaration: true`, TypeScript writes the types of a library that uses numalign. It must name
// an interface, and fails (TS4023) where no entry exports it; an alias it writes out.
import ts from '@tsd/typescript';

/** Makes aliases of those interfaces in the bundled types that no entry exports. */
export const aliasHiddenInterfaces = () => ({
  name: 'alias-hidden-interfaces',
  generateBundle(_options, bundle) {
    const chunks = Object.values(bundle).filter(({ type }) => type === 'chunk');
    const sources = new Map(chunks.map((chunk) => [chunk, parsed(chunk)]));
    const entries = chunks.filter(({ isEntry }) => isEntry);
    const exported = new Set(entries.flatMap((chunk) => exportsOf(sources.get(chunk))));
    for (const chunk of chunks) chunk.code = withAliases(sources.get(chunk), exported);
  },
});

const parsed = ({ fileName, code }) => ts.createSourceFile(fileName, code, ts.ScriptTarget.Latest);

function exportsOf({ statements }) {
  const lists = statements.filter(ts.isExportDeclaration).map(({ exportClause }) => exportClause.elements);
  return lists.flat().map(({ propertyName, name }) => (propertyName ?? name).text);
}

function withAliases(source, exported) {
  const isHidden = (each) => !exported.has(each.name.text) && !namesThis(each);
  // From the end on: an alias is longer or shorter than its interface.
  return source.statements
    .filter(ts.isInterfaceDeclaration)
    .filter(isHidden)
    .reduceRight(
      (code, each) => code.slice(0, each.getStart(source)) + aliasOf(each, source) + code.slice(each.end),
      source.text,
    );
}

/** Whether a node has the type `this`, which an alias cannot have. */
const namesThis = (node) => node.kind === ts.SyntaxKind.ThisType || ts.forEachChild(node, namesThis) === true;

function aliasOf({ name, heritageClauses, members, end }, { text }) {
  const brace = members.pos - 1;
  const head = text.slice(name.pos, heritageClauses?.pos ?? brace).trim();
  const bases = (heritageClauses ?? []).flatMap(({ types }) =>
    types.map((type) => text.slice(type.pos, type.end).trim()),
  );
  return `type ${head} = ${[...bases, text.slice(brace, end)].join(' & ')};`;
}
