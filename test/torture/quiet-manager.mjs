// Opens a manager whose kernel is a folder tree: composes the package's own modules like
// openManager, except for the files of settings.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { modulesOf } from './package-modules.mjs';
import { padded, TREE } from './quiet-tree.mjs';

const quieters = new WeakMap();

/** What changes the settings for a manager of {@link openQuietManager}. */
export const quieterOf = (manager) => quieters.get(manager);

/**
 * `folder`: of the package; `options`: of openManager, or with the text `synthetic` of a machine;
 * `onRead`: a callback for each path that is read or listed.
 */
export async function openQuietManager(folder, { synthetic, ...options }, onRead = () => {}) {
  const module = modulesOf(folder);
  const { parseConfig } = await module('input/config');
  const { discover } = await module('entries/topology');
  const { deviceResources, openStore, hostOf } = await module('managers/host');
  const { prepare } = await module('managers/prepare');
  const { MachineQuieter } = await module('quiet/machine-quieter');
  const { kernelFiles } = await module('quiet/kernel/kernel-files');
  const { interrupts } = await module('quiet/parts/interrupts');
  const { workqueues } = await module('quiet/parts/workqueues');
  const { idle } = await module('quiet/parts/idle');
  const { Manager } = await module('managers/manager');
  const { ManagerWatch } = await module('managers/manager-watch');
  const { Lifetime } = await module('managers/manager-parts');
  const config = parseConfig(options);
  const topology = config.topology ?? (await discover(synthetic === undefined ? {} : { synthetic }));
  const resources = deviceResources(config, topology);
  const ledger = openStore(config, topology);
  const end = ledger.use();
  try {
    const host = hostOf(config, topology, ledger, resources);
    const root = join(options.stateDir, TREE);
    const inTree = kernelFiles(root);
    const files = {
      ...inTree,
      read: (path) => {
        onRead(path);
        return inTree.read(path);
      },
      list: (path) => {
        onRead(path);
        return inTree.list(path);
      },
      write: (path, value) => writeFileSync(root + path, padded(value), { flag: 'r+' }),
    };
    const parts = [interrupts, workqueues, idle];
    host.quieter = new MachineQuieter(
      () => host.topology,
      parts,
      files,
      () => [],
    );
    const found = Object.freeze(await prepare(host, config));
    const manager = new Manager({
      config,
      host,
      resources,
      lifetime: new Lifetime(),
      watch: new ManagerWatch(host, { isBlind: false, reclaim: async () => {} }),
      openingWarnings: found,
    });
    quieters.set(manager, host.quieter);
    return manager;
  } finally {
    end();
  }
}
