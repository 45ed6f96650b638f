// keeper.mjs FOLDER GROUP [PATH]…: the process to which a runtime belongs. It holds the mount namespace in
// which the runtime and its containers have their mounts and their /run, and takes all of it away
// when its standard input ends: because the runtime is not needed any more, or because the tests
// have died. The PATHs in /run stay the machine's.
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { run } from '../../../../../test/vm/debian-packages.mjs';
import { removeGroups } from './cgroups.mjs';

const [, , folder, group, ...kept] = process.argv;

function mountsBelow(path) {
  const points = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4]);
  return points.filter((point) => point?.startsWith(`${path}/`)).reverse();
}

async function takeAway() {
  const left = await removeGroups(group);
  for (const point of mountsBelow(folder)) run('umount', ['--lazy', point]);
  rmSync(folder, { recursive: true, force: true });
  if (left.length > 0) throw new Error(`cgroups are left: ${left.join(', ')}`);
}

// A terminal's Ctrl-C reaches all its processes; this one ends after the tests.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
mkdirSync(join(folder, 'run'));
// What a shim puts in /run is the machine's business nowhere.
run('mount', ['--make-rshared', '/']);
for (const path of kept) {
  const place = join(folder, 'run', relative('/run', path));
  mkdirSync(place, { recursive: true });
  run('mount', ['--bind', path, place]);
}
run('mount', ['--rbind', join(folder, 'run'), '/run']);
process.stdin.on('end', () => takeAway()).resume();
process.stdout.write('ready\n');
