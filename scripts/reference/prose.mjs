// Doc comments as Markdown.

/** The text of a doc comment, and what its tags say. */
export function partsOfDoc(doc) {
  const [text, ...tags] = doc.split(/(?:^|\s)@(?=(?:throws|default|remedy|deprecated)\b)/);
  const said = Object.fromEntries(
    tags.map((tag) => {
      const [, name, value] = /^(\w+)\s*([\s\S]*)$/.exec(tag);
      return [name, value.replace(/\s+/g, ' ').trim()];
    }),
  );
  return { text: text.trim(), ...said };
}

/** The anchor that GitHub makes of a heading. */
export function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

const title = (words) =>
  (words.charAt(0).toUpperCase() + words.slice(1)).replaceAll('-', ' ').replace(/\bcpus\b/, 'CPUs');

// `docs/memory.md#buffers` is a link to that page, and `{@link Grant.pin}` one to its class.
function linkToPage(_, path, anchor) {
  const target = path.startsWith('reference/') ? path.slice('reference/'.length) : `../${path}`;
  const [name] = path.split('/').at(-1).split('.');
  return `[${title(anchor ?? name)}](${target}${anchor ? `#${anchor}` : ''})`;
}

/**
 * The text of a comment as Markdown for the page `page`. `places`: where each export is described, as
 * `page.md#anchor` by its name.
 */
export function markdownOf(text, page, places) {
  // What is code already stays as it is.
  return text
    .split(/(`[^`]*`)/)
    .map((part, i) =>
      i % 2 === 1
        ? part.replace(/\s+/g, ' ')
        : part
            .replace(/\{@link\s+([\w.]+)\}/g, (_, name) => link(name, page, places))
            .replace(/\bdocs\/((?:reference\/)?[\w-]+\.md)(?:#([\w-]+))?/g, linkToPage)
            .replace(/\bERR_\w+\*?/g, '`$&`'),
    )
    .join('');
}

/** A link to the description of an export, or its name where there is none. */
export function link(name, page, places) {
  const target = places.get(name) ?? places.get(name.split('.')[0]);
  return target ? `[\`${name}\`](${targetOn(page, target)})` : `\`${name}\``;
}

export const targetOn = (page, target) =>
  target.startsWith(`${page}#`) ? target.slice(page.length) : target;

/** A type as code, with a link for each export that it names, but not for `self`. */
export function typed(text, page, places, self) {
  // Spaces stay outside, where lines can break.
  const code = (part) => part.replace(/\S(?:.*\S)?/, (inner) => `\`${inner}\``);
  let [before, result] = ['', ''];
  for (const part of text.split(/(?<!')\b([A-Z]\w+)\b/)) {
    if (!places.has(part) || part === self) before += part;
    else {
      result += code(before) + link(part, page, places);
      before = '';
    }
  }
  return result + code(before);
}

// On every page of the reference: links to these would be everywhere.
const BASIC = ['CpuSet', 'NodeSet'];

/** Signatures as code, then links to the types that they name. */
export function signatureParts(signatures, page, places, self) {
  const types = new Set(
    signatures.flatMap((each) => [...each.matchAll(/\b[A-Z]\w+/g)].map(([name]) => name)),
  );
  const links = [...types]
    .filter((name) => places.has(name) && name !== self && !BASIC.includes(name))
    .map((name) => link(name, page, places));
  const line = links.length === 0 ? [] : [fill(`Types: ${links.join(', ')}.`)];
  return [...signatures.map((each) => `\`${each}\``), ...line];
}

/** What a doc comment says about errors. */
export const throwsLine = (throws, md) => (throws ? md(`Throws ${throws.replace(/\.$/, '')}.`) : '');

const WIDTH = 100;

/** Prose in lines of at most 100 columns; code and links stay whole. */
export function fill(text, indent = '') {
  const lines = [];
  for (const paragraph of text.split(/\n{2,}/)) {
    // A list keeps its items.
    for (const item of paragraph.split(/\n(?=- )/)) {
      const hanging = item.startsWith('- ') ? `${indent}  ` : indent;
      let line = '';
      for (const word of item
        .replace(/\s+/g, ' ')
        .trim()
        .split(/ (?=(?:[^`]*`[^`]*`)*[^`]*$)/)) {
        if (line.trim() !== '' && line !== '-' && line.length + word.length + 1 > WIDTH - hanging.length) {
          lines.push(line);
          line = hanging + word;
        } else line = line === '' ? word : `${line} ${word}`;
      }
      lines.push(line);
    }
    lines.push('');
  }
  return lines.join('\n').trimEnd();
}

/** A cell of a table. */
export const cell = (text) =>
  text
    .replace(/\s+/g, ' ')
    .replace(/(?<!\\)\|/g, '\\|')
    .trim();

export function table(heads, rows) {
  return [heads, heads.map(() => '---'), ...rows]
    .map((row) => `| ${row.map((text) => cell(text) || '-').join(' | ')} |`)
    .join('\n');
}

/** `a`, `b` and `c`. */
export function names(list) {
  const codes = list.map((each) => `\`${each}\``);
  return codes.length < 2 ? codes.join('') : `${codes.slice(0, -1).join(', ')} and ${codes.at(-1)}`;
}
