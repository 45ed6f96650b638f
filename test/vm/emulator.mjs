// The QEMU that the machines run in.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { backportsOptions, unpackPackages } from './debian-packages.mjs';

const PROGRAM = 'qemu-system-x86_64';
// Before 8.1 a CPU may continue with instructions that another CPU has just replaced. Linux then
// dies or hangs when it changes its own code: at boot, and with every partition. See QEMU's
// deba78709ae8 "Always lock pages before translation".
const FIRST_GOOD = [8, 1];
const PACKAGES = ['qemu-system-x86', 'qemu-system-common', 'qemu-system-data', 'seabios'];
// A file of ipxe-qemu, which comes with any QEMU.
const NETWORK_ROMS = '/usr/lib/ipxe/qemu';

/** `[major, minor]`, or undefined if it does not run. */
function versionOf(program) {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  const found = /version (\d+)\.(\d+)/.exec(stdout ?? '');
  return found?.slice(1).map(Number);
}

function isGood(program) {
  const [major, minor] = versionOf(program) ?? [0, 0];
  return major > FIRST_GOOD[0] || (major === FIRST_GOOD[0] && minor >= FIRST_GOOD[1]);
}

/**
 * The program and its first arguments: the installed QEMU if it is new enough, else that of the
 * backports, unpacked in `cache`. If the backports are out of reach too, the installed one, and
 * `complaint` says why.
 */
export function prepareEmulator(cache) {
  const installed = { program: PROGRAM, arguments: [] };
  if (isGood(PROGRAM)) return installed;
  const tree = join(cache, 'qemu');
  const program = join(tree, 'usr/bin', PROGRAM);
  try {
    if (!existsSync(tree)) unpackPackages(PACKAGES, tree, backportsOptions(cache));
    if (!isGood(program)) throw new Error(`${program} does not run here`);
  } catch (error) {
    return { ...installed, complaint: error.message };
  }
  const data = [join(tree, 'usr/share/qemu'), join(tree, 'usr/share/seabios'), NETWORK_ROMS];
  return { program, arguments: data.flatMap((folder) => ['-L', folder]) };
}
