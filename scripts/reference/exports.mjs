// The entry points of the package, their exports, and where each of these is described.
import { readFileSync } from 'node:fs';
import { hasMembers, membersOfExport, nameMethods } from './members.mjs';
import { wayTo } from './parts.mjs';
import { anchorOf } from './prose.mjs';
import { Source } from './source.mjs';
import { pathOf } from './type-texts.mjs';

const FILES = {
  numalign: 'index.ts',
  'numalign/topology': 'entries/topology.ts',
  'numalign/kubelet': 'entries/kubelet.ts',
  'numalign/diagnostics': 'entries/diagnostics.ts',
  '@numalign/metrics': 'packages/metrics/lib/index.ts',
  '@numalign/metrics/opentelemetry': 'packages/metrics/lib/opentelemetry.ts',
  '@numalign/page': 'packages/page/lib/index.ts',
  'numalign/cluster': 'entries/cluster.ts',
  'numalign/tools': 'entries/tools.ts',
  'numalign/preload': 'preload.ts',
};

export const ENTRY_FILES = Object.values(FILES);

// The comment at the head of the file: `// numalign/kubelet: the names and files of the kubelet.`
function introductionOf(name, file) {
  const text = readFileSync(pathOf(file), 'utf8');
  const comment =
    /^(?:\/\/ .*\n)+/
      .exec(text)?.[0]
      .replace(/^\/\/ /gm, '')
      .replace(/\n/g, ' ') ?? '';
  if (!comment.startsWith(`${name}: `)) throw new Error(`${file} must begin with "// ${name}: "`);
  const introduction = comment.slice(name.length + 2).trim();
  return introduction.charAt(0).toUpperCase() + introduction.slice(1);
}

// PoolOptions are what numalign answers, for other packages.
export const isOptions = ({ name, kind }) =>
  name.endsWith('Options') && name !== 'PoolOptions' && (kind === 'interface' || kind === 'type');

/** Everything that is public, with where it is described. */
export function publicExports(source) {
  const places = new Map();
  const anchors = new Set();
  const options = new Map();
  const entries = Object.entries(FILES).map(([name, file]) => {
    const exports = source.exportsOf(file).filter((each) => each.name !== 'default');
    for (const each of exports.filter(isOptions)) options.set(each.name, each);
    return { name, file, introduction: introductionOf(name, file), exports };
  });
  // Types without an exported name keep theirs too where they are described.
  source.markExported([...entries.flatMap(({ exports }) => exports), ...source.describedTypes()]);
  for (const each of hiddenOptions(source, entries, options)) options.set(each.name, each);
  const nameHeading = (each, entry) => {
    const other = each.kind === 'constant' ? `${each.name} of ${entry.name}` : `${each.name} (type)`;
    each.heading = anchors.has(anchorOf(each.name)) ? other : each.name;
    anchors.add(anchorOf(each.heading));
    if (!places.has(each.name)) places.set(each.name, `api.md#${anchorOf(each.heading)}`);
  };
  // Of names that differ only in their capitals, the first one has the plain anchor.
  for (const kinds of [['function'], ['class'], ['constant', 'interface', 'type']])
    for (const entry of entries)
      for (const each of entry.exports)
        if (kinds.includes(each.kind) && !isOptions(each)) nameHeading(each, entry);
  for (const name of options.keys()) places.set(name, `configuration.md#${anchorOf(name)}`);
  const exported = entries.flatMap(({ exports }) => exports);
  const parts = hiddenParts(source, { exported, options, places });
  for (const part of parts) nameHeading(part, { name: part.owner.name });
  const described = [...exported, ...parts].filter((each) => !isOptions(each));
  nameMethods(source, described, { anchors, places });
  return { entries, options: [...options.values()], places };
}

// What is empty, or stands in for another class, has the same types as that.
const isOfAnother = ({ name }) => name.startsWith('Empty');

const byName = (a, b) => isOfAnother(a) - isOfAnother(b) || (a.name < b.name ? -1 : 1);

// Options have those of types that no entry exports, too.
function ownMembers(source, owner, places) {
  if (isOptions(owner)) return source.membersOf(owner);
  const { shown, statics } = membersOfExport(source, owner, places);
  return [...shown, ...statics];
}

/**
 * The types that exports name and that no entry exports. Each becomes one of the `parts` of the
 * nearest type or function that names it.
 */
function hiddenParts(source, { exported, options, places }) {
  const first = [...new Set([...exported.sort(byName), ...options.values()])];
  const known = new Set(first.map(({ symbol }) => symbol));
  const found = [];
  const partsOf = (owner) => {
    const members = hasMembers(owner) ? ownMembers(source, owner, places) : [];
    const named = source.typesNamedBy(owner, members);
    const parts = named.filter((part) => !known.has(part.symbol) && !isOptions(part));
    for (const { symbol } of parts) known.add(symbol);
    return parts.map((part) => ({ ...part, owner, way: wayTo(part, owner, members, source) }));
  };
  for (let owners = first; owners.length > 0; owners = owners.flatMap(({ parts }) => parts)) {
    for (const owner of owners) owner.parts = partsOf(owner);
    if (owners !== first) found.push(...owners);
  }
  return found;
}

// Options that a function takes and whose type no entry exports.
function hiddenOptions(source, entries, known) {
  const found = new Map();
  const look = (texts) => {
    for (const name of texts.flatMap((text) => Source.namesIn(text))) {
      if (known.has(name) || found.has(name)) continue;
      // `Options` alone is a parameter of a type.
      const described = /\wOptions$/.test(name) && source.find(name);
      if (!described || !isOptions(described)) continue;
      found.set(name, described);
      look(textsOf(source, described));
    }
  };
  for (const each of entries.flatMap(({ exports }) => exports)) look(textsOf(source, each));
  return found.values();
}

/** The signatures and types of an export. */
export function textsOf(source, described) {
  const { kind, node, name } = described;
  if (kind === 'function') return source.signaturesOf(described);
  if (kind === 'type') return [source.typeOfAlias(described)];
  if (kind === 'constant') return [];
  const members = source.membersOf(described).flatMap(({ signatures, type }) => [...signatures, type]);
  const heritage = (node.heritageClauses ?? []).map((clause) => clause.getText());
  return [...members, ...heritage].filter((text) => text !== name);
}
