// Writes docs/reference/ from the source; with --check only says which pages are not up to date.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../steps.mjs';
import { apiPage } from './api.mjs';
import { allMetrics, commandLine, optionTables } from './built.mjs';
import { commandLinePage } from './command-line.mjs';
import { configurationPage } from './configuration.mjs';
import { errorsPage } from './errors.mjs';
import { ENTRY_FILES, publicExports } from './exports.mjs';
import { metricsPage } from './metrics.mjs';
import { openSource } from './source.mjs';

const folder = join(root, 'docs/reference');
const source = openSource(ENTRY_FILES);
const exported = publicExports(source);
const pages = {
  'api.md': apiPage(source, exported),
  'command-line.md': commandLinePage(await commandLine()),
  'configuration.md': configurationPage(source, { ...exported, tables: await optionTables() }),
  'errors.md': errorsPage(source, exported),
  'metrics.md': metricsPage(source, exported, await allMetrics()),
};

const textOf = (name) => {
  try {
    return readFileSync(join(folder, name), 'utf8');
  } catch {
    return '';
  }
};

mkdirSync(folder, { recursive: true });
for (const [name, text] of Object.entries(pages)) {
  const page = `${text.trimEnd()}\n`;
  if (textOf(name) === page) continue;
  if (process.argv.includes('--check')) {
    console.error(`docs/reference/${name} is not up to date: npm run docs`);
    process.exitCode = 1;
  } else writeFileSync(join(folder, name), page);
}
