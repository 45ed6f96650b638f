// Writes docs/reference/ from the source; with --check only says which pages are not up to date.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../steps.mjs';
import { topPicture } from '../top/picture.mjs';
import { apiPage } from './api.mjs';
import { allMetrics, commandLine, machineReader, nodeFields, optionTables } from './built.mjs';
import { commandLinePage } from './command-line.mjs';
import { configurationPage } from './configuration.mjs';
import { errorsPage } from './errors.mjs';
import { ENTRY_FILES, publicExports } from './exports.mjs';
import { machines } from './machines.mjs';
import { metricsPage } from './metrics.mjs';
import { NODE_FIELDS_PAGE, nodeFieldsPage } from './node-fields.mjs';
import { openSource } from './source.mjs';

const docs = join(root, 'docs');
const source = openSource(ENTRY_FILES);
const exported = publicExports(source);
const { page, picture } = await machines(await machineReader());
const pages = {
  'reference/api.md': apiPage(source, exported),
  'reference/command-line.md': commandLinePage(await commandLine()),
  'reference/configuration.md': configurationPage(source, { ...exported, tables: await optionTables() }),
  'reference/errors.md': errorsPage(source, exported),
  'reference/machines.md': page,
  'reference/metrics.md': metricsPage(source, exported, await allMetrics()),
  'machines.svg': picture,
  'top.svg': topPicture({
    title:
      'numalign top in a virtual machine: two programs come, a compiler gets onto a CPU of one, which ends',
    still: 'cc1plus',
  }),
  [NODE_FIELDS_PAGE]: nodeFieldsPage(await nodeFields()),
};

const textOf = (name) => {
  try {
    return readFileSync(join(docs, name), 'utf8');
  } catch {
    return '';
  }
};

mkdirSync(join(docs, 'reference'), { recursive: true });
for (const [name, text] of Object.entries(pages)) {
  const written = `${text.trimEnd()}\n`;
  if (textOf(name) === written) continue;
  if (process.argv.includes('--check')) {
    console.error(`docs/${name} is not up to date: npm run docs`);
    process.exitCode = 1;
  } else writeFileSync(join(docs, name), written);
}
