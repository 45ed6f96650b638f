// The members of an export: those that its section shows, and where its methods are described.
import {
  anchorOf,
  fill,
  link,
  markdownOf,
  partsOfDoc,
  signatureParts,
  targetOn,
  throwsLine,
  typed,
} from './prose.mjs';

const isOfSymbol = ({ name }) => name.startsWith('[');

/** Methods with headings of their own. */
const isHeaded = (member) => member.isMethod && !isOfSymbol(member);

const isPlain = (member) => !isHeaded(member) && !isOfSymbol(member);

const lowerFirst = (name) => name.charAt(0).toLowerCase() + name.slice(1);

export const hasMembers = ({ kind }) => kind === 'class' || kind === 'interface';

/**
 * The members that the section of an export shows, and those that it has from other exports, whose
 * sections show them.
 */
export function membersOfExport(source, described, places) {
  const all = source.membersOf(described);
  const bases = source.basesAmong(described, places).map((base) => {
    const declarations = new Set(source.membersOf(base).map(({ symbol }) => symbol.declarations[0]));
    return { name: base.name, members: all.filter(({ symbol }) => declarations.has(symbol.declarations[0])) };
  });
  const inherited = new Set(bases.flatMap(({ members }) => members));
  // What stands in for another class is described there.
  const standsIn = described.kind === 'class' && source.implementsAnother(described);
  const shown = all.filter((member) => !inherited.has(member) && (member.doc !== '' || !standsIn));
  const statics = described.kind === 'class' ? source.membersOf(described, true) : [];
  return { bases, shown, statics };
}

/** Gives each method a heading, and says in `places` where it is. */
export function nameMethods(source, list, { anchors, places }) {
  const all = list.filter(hasMembers).map((each) => [each, membersOfExport(source, each, places)]);
  for (const [each, { shown, statics }] of all) {
    each.headings = new Map();
    const nameMethod = (member, owner) => {
      const [, parameter = ''] = /\((\w+)/.exec(member.signatures[0]) ?? [];
      const heading = `${owner}.${member.name}()`;
      // Not the anchor of an export.
      const other = `${owner}.${member.name}(${parameter})`;
      const chosen = anchors.has(anchorOf(heading)) ? other : heading;
      anchors.add(anchorOf(chosen));
      each.headings.set(member.symbol, chosen);
      places.set(`${each.name}.${member.name}`, `api.md#${anchorOf(chosen)}`);
    };
    for (const member of statics.filter(isHeaded)) nameMethod(member, each.name);
    for (const member of shown.filter(isHeaded)) nameMethod(member, lowerFirst(each.name));
  }
  for (const [each, { bases }] of all)
    for (const { name, members } of bases)
      for (const member of members.filter(isHeaded))
        places.set(`${each.name}.${member.name}`, places.get(`${name}.${member.name}`));
}

/** The paragraphs about all members of an export. */
export function memberParts(source, described, texts) {
  const { bases, shown, statics } = membersOfExport(source, described, texts.places);
  const siblings = new Set([...shown, ...bases.flatMap(({ members }) => members)].map(({ name }) => name));
  const context = { ...texts, siblings, described };
  const methods = [...statics.filter(isHeaded), ...shown.filter(isHeaded).sort(byName)];
  const items = [
    ...statics.filter((each) => !isHeaded(each)).map((each) => item(each, context, `${described.name}.`)),
    // Such as [Symbol.dispose].
    ...[...shown.filter(isPlain), ...shown.filter(isOfSymbol)].map((each) => item(each, context)),
  ];
  return [
    ...bases.filter(({ members }) => members.length > 0).map((base) => baseLine(base, texts)),
    methods.length > 3 ? index(methods, context) : '',
    items.join('\n'),
    ...methods.flatMap((each) => method(each, context)),
  ].filter(Boolean);
}

const byName = (a, b) => (a.name < b.name ? -1 : 1);

function baseLine({ name, members }, { page, places }) {
  const list = members.map((each) => memberLink(name, each.name, page, places));
  return fill(`Has the members of ${link(name, page, places)}: ${list.join(', ')}.`);
}

/** A method is a link, everything else is code. */
function memberLink(owner, name, page, places) {
  const target = places.get(`${owner}.${name}`);
  return target ? `[\`${name}\`](${targetOn(page, target)})` : `\`${name}\``;
}

function index(methods, { described }) {
  const links = methods.map(
    (each) => `[\`${each.name}\`](#${anchorOf(described.headings.get(each.symbol))})`,
  );
  return fill(`Methods: ${links.join(', ')}.`);
}

// A base class names the class itself as its parameter.
const withSelf = (text, { described }) => text.replace(/\bSelf\b/g, described.name);

/** A doc comment as Markdown; a member that it names is in the same section. */
function wordsOf(doc, { page, places, siblings, described }) {
  const plain = (each) =>
    each.replace(/\{@link\s+(\w+)\}/g, (all, other) =>
      siblings.has(other) ? memberLink(described.name, other, page, places) : all,
    );
  const md = (each) => markdownOf(plain(each), page, places);
  const { text, throws, deprecated } = partsOfDoc(doc);
  return {
    words: md(text || (deprecated ? `Deprecated: ${deprecated}` : '')),
    errors: throwsLine(throws, md),
  };
}

function item({ name, doc, isOptional, type: own, signatures }, context, before = '') {
  const text = signatures[0] ?? `${name}${isOptional ? '?' : ''}: ${own}`;
  const { words, errors } = wordsOf(doc, context);
  const [lead, ...list] = [words, errors]
    .filter(Boolean)
    .join(' ')
    .split(/\n(?=- )/);
  const lines = list.map((each) => `  ${fill(each, '  ')}`);
  const { page, places, described } = context;
  const type = typed(before + withSelf(text, context), page, places, described.name);
  return [fill(`- ${type}${lead ? `: ${lead}` : ''}`), ...lines].join('\n');
}

function method({ symbol, signatures, doc }, context) {
  const { page, places, described } = context;
  const { words, errors } = wordsOf(doc, context);
  return [
    `#### ${described.headings.get(symbol)}`,
    ...signatureParts(
      signatures.map((each) => withSelf(each, context)),
      page,
      places,
      described.name,
    ),
    ...[words, errors].filter(Boolean).map((each) => fill(each)),
  ];
}
