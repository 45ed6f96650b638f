// The table of fields in packages/kubernetes/docs/configuration.md.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../steps.mjs';

const PAGE = 'packages/kubernetes/docs/configuration.md';
const PARTS = {
  placement: 'next request',
  machine: 'at once',
  live: 'at once',
  start: 'next start',
};

const cell = (text) => String(text).replaceAll('|', '\\|');

function row([name, { type, words, flag, part, default: byDefault, defaultWords }]) {
  const shown = defaultWords ?? byDefault ?? 'none';
  const flagText = flag === null ? '' : `\`${flag.usage}\``;
  return `| ${[`\`${name}\``, words, type, shown, flagText, PARTS[part]].map(cell).join(' | ')} |`;
}

/** The page, with the table of these fields. */
export function nodeFieldsPage(fields) {
  const text = readFileSync(join(root, PAGE), 'utf8');
  const table = [
    '| field | what it is | values | default | flag | applies |',
    '|---|---|---|---|---|---|',
    ...Object.entries(fields).map(row),
  ].join('\n');
  return text.replace(/(<!-- fields: .* -->\n)[\s\S]*(<!-- \/fields -->)/, `$1\n${table}\n\n$2`);
}

export const NODE_FIELDS_PAGE = join('..', PAGE);
