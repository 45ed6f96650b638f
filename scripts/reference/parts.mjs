// How a type without an exported name is written in code, from the type that has it.

/**
 * The way to `part` from `owner`, which names it, such as `StateStatus['grants'][number]`. Undefined
 * where no short one leads there.
 */
export function wayTo(part, owner, members, source) {
  const { name, kind } = owner;
  const from = owner.way ?? name;
  if (kind === 'function')
    return wayFrom(`ReturnType<typeof ${name}>`, resultOf(source.signaturesOf(owner)[0]), part);
  if (kind === 'type') {
    const text = source.typeOfAlias(owner);
    return wayFrom(from, text, part) ?? extracted(from, source.membersOf(part), text);
  }
  for (const { name: key, type, signatures, isOptional } of members) {
    const member = `${from}['${key}']`;
    const way =
      signatures.length > 0
        ? wayFrom(`ReturnType<${member}>`, resultOf(signatures[0]), part)
        : wayFrom(member, isOptional ? `${type} | undefined` : type, part);
    if (way) return way;
    const place = parametersOf(signatures[0]).indexOf(part.name);
    if (place >= 0) return `Parameters<${member}>[${place}]`;
  }
  return undefined;
}

const parametersOf = (signature = '') =>
  [...signature.slice(0, signature.lastIndexOf('): ')).matchAll(/\w+\??: ([^,]+)/g)].map(([, type]) => type);

const resultOf = (signature) => signature.slice(signature.lastIndexOf('): ') + 3);

/** From a type, whose text is given, through what its values may be besides, and lists of them. */
function wayFrom(from, text, { name }) {
  const [, promised] = /^Promise<(.*)>$/.exec(text) ?? [];
  if (promised) return wayFrom(`Awaited<${from}>`, promised, { name });
  const bare = text.replace(/ \| (?:null|undefined)\b/g, '');
  const way = bare === text ? from : `NonNullable<${from}>`;
  if (bare === name) return way;
  if (bare === `Readonly<${name}>`) return way;
  return [`readonly ${name}[]`, `${name}[]`].includes(bare) ? `${way}[number]` : undefined;
}

/** One of a union, by the one value that a member of it has. */
function extracted(from, members, text) {
  const found = members.find(({ type }) => /^'[\w-]+'$/.test(type));
  const isUnion = text.includes(' | ');
  return found && isUnion ? `Extract<${from}, { ${found.name}: ${found.type} }>` : undefined;
}
