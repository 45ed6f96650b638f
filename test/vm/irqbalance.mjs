// The irqbalance that machines run: Debian's, unpacked in the cache. It needs the same libraries as
// QEMU and numactl.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { unpackPackages } from './debian-packages.mjs';

/**
 * The program's path, the same in the machines, which see the host's files.
 *
 * @throws Error if the package is out of reach
 */
export function prepareIrqbalance(cache) {
  const tree = join(cache, 'irqbalance');
  if (!existsSync(tree)) unpackPackages(['irqbalance'], tree, []);
  const program = join(tree, 'usr/sbin/irqbalance');
  // It exits with 1 even so.
  const { stdout, stderr, error } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  if (!stdout?.startsWith('irqbalance version'))
    throw new Error(`${program}: ${error?.message ?? stderr.trim()}`);
  return program;
}
