// Opens a manager of a simulated machine whose kernel is a folder tree: the package's own modules, put
// together as openManager does, but for the files.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { padded, TREE } from './quiet-tree.mjs';

/** `folder`: of the package; `options`: of openManager, with topology and stateDir. */
export async function openQuietManager(folder, options) {
  const module = (path) => import(pathToFileURL(`${folder}/dist/${path}.js`));
  const { parseConfig } = await module('input/config');
  const { openStore, siteOf } = await module('opening/site');
  const { prepare } = await module('opening/prepare');
  const { MachineQuieter } = await module('quiet/machine-quieter');
  const { kernelFiles } = await module('quiet/kernel/kernel-files');
  const { PARTS } = await module('quiet/parts/parts');
  const { Manager } = await module('manager');
  const { Lifetime } = await module('managers/lifetime');
  const config = parseConfig(options);
  const resources = new Map();
  const { topology, stateDir } = options;
  const ledger = openStore(config, topology);
  const end = ledger.use();
  try {
    const site = siteOf(config, topology, ledger, resources);
    const root = join(stateDir, TREE);
    const files = {
      ...kernelFiles(root),
      write: (path, value) => writeFileSync(root + path, padded(value), { flag: 'r+' }),
    };
    const advice = () => [];
    site.quieter = new MachineQuieter(() => site.topology, PARTS, files, advice);
    const found = Object.freeze(await prepare(site, config));
    return new Manager({ config, site, resources, lifetime: new Lifetime(), found });
  } finally {
    end();
  }
}
