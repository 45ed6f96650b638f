// Recipes of docs/recipes.md that need a cgroup v2 with the cpuset controller, word for word: in a
// virtual machine, as root.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { removeCgroup } from './cgroup-removal.mjs';

const PACKAGE = fileURLToPath(new URL('../../..', import.meta.url));
const MOUNT = '/sys/fs/cgroup';
const BOX = `${MOUNT}/box.service`;
const STATE = '/run/gateway';
const UNPRIVILEGED = 65534;

const [, section] = readFileSync(join(PACKAGE, 'docs/recipes.md'), 'utf8').split(
  '\n## In a container with a cgroup of its own\n',
);
const blockOf = (language) => new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(section)[1];
const [ENTRYPOINT, APP] = [blockOf('sh'), blockOf('ts')];

// Another process in the container, and the state of it and of numalign.
const BEFORE = `import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
const other = spawn('sleep', ['60']);
const cpusOf = (pid) => /^Cpus_allowed_list:\\s*(\\S+)$/m.exec(readFileSync(\`/proc/\${pid}/status\`, 'utf8'))[1];
`;
const AFTER = `
const partition = await manager.acquire({ cpu: 1, require: 'partition' }).catch(({ code }) => code);
const { enforcement, cpus, warnings } = grant;
const found = { enforcement, cpus, warnings, partition, own: cpusOf('self'), others: cpusOf(other.pid), shared: manager.sharedPool() };
console.log(JSON.stringify(found));
other.kill();
process.exit();
`;

let folder;
beforeEach(() => {
  writeFileSync(`${MOUNT}/cgroup.subtree_control`, '+cpuset\n');
  folder = mkdtempSync(join(tmpdir(), 'numalign-vm-'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(PACKAGE, join(folder, 'node_modules/numalign'));
  writeFileSync(join(folder, 'entrypoint.sh'), ENTRYPOINT);
  mkdirSync(BOX);
});
afterEach(() => {
  removeCgroup(BOX);
  for (const path of [folder, STATE]) rmSync(path, { recursive: true, force: true });
});

/**
 * Runs `command` as a container's first process, in its own cgroup, which is all that it sees of
 * cgroups.
 */
function inContainer(command, { app = APP, access = 'rw' } = {}) {
  writeFileSync(join(folder, 'app.mjs'), BEFORE + app + AFTER);
  const mount = `umount -l ${MOUNT} && mount -t cgroup2 none ${MOUNT} && mount -o remount,bind,${access} ${MOUNT}`;
  const inside = `${mount} && cd ${folder} && exec ${command}`;
  const enter = `echo $$ > ${BOX}/cgroup.procs && exec unshare --cgroup --mount sh -c '${inside}'`;
  const { status, stdout, stderr } = spawnSync('sh', ['-c', enter], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

function assertHeld({ enforcement, cpus, own, others, shared, partition }) {
  assert.equal(enforcement, 'cpuset');
  assert.equal(own, cpus);
  assert.equal(others, shared);
  assert.equal(partition, 'ERR_ENFORCEMENT');
}

describe('in a container with a cgroup of its own', () => {
  it('the recipe has a cpuset hold all other processes in the container', () => {
    assertHeld(inContainer('sh entrypoint.sh'));
  });

  it('the recipe needs no root if the user owns the cgroup', () => {
    for (const file of ['.', 'cgroup.procs', 'cgroup.subtree_control'])
      chownSync(join(BOX, file), UNPRIVILEGED, UNPRIVILEGED);
    mkdirSync(STATE, { mode: 0o700 });
    for (const path of [folder, STATE]) chownSync(path, UNPRIVILEGED, UNPRIVILEGED);
    assertHeld(
      inContainer(`setpriv --reuid ${UNPRIVILEGED} --regid ${UNPRIVILEGED} --clear-groups sh entrypoint.sh`),
    );
  });

  it('a grant without requirements uses masks if cgroups are read-only, and says why', () => {
    const app = APP.replace(/^await manager\.addSharedMember.*$/m, '').replace(", require: 'cpuset'", '');
    const { enforcement, warnings } = inContainer('node app.mjs', { app, access: 'ro' });
    assert.equal(enforcement, 'members');
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['ENFORCEMENT_SHORTFALL'],
    );
  });
});
