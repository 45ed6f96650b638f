// etcd, out of Debian's package: downloaded once, installed nowhere.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from '../../../../scripts/cache-folder.mjs';
import { debianMirror, sourceOptions, unpackPackages } from '../../../../test/vm/debian-packages.mjs';

const SUITE = 'bookworm';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * The path of the program.
 *
 * @throws Error if it is out of reach
 */
export function prepareEtcd() {
  const folder = cacheFolder('numalign-kubernetes');
  const program = join(folder, 'etcd', 'usr/bin/etcd');
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  const apt = mkdtempSync(join(folder, 'apt-'));
  try {
    const source = `deb [signed-by=${KEYRING}] ${debianMirror()} ${SUITE} main\n`;
    unpackPackages(['etcd-server'], join(folder, 'etcd'), sourceOptions(apt, 'debian', source));
  } finally {
    rmSync(apt, { recursive: true, force: true });
  }
  return program;
}
