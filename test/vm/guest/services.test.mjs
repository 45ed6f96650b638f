// On a machine that systemd has booted: what setup installs, a service on CPUs of its own, and removal.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../../packages/cli/dist/main.cjs', import.meta.url));
const UNITS = '/etc/systemd/system';
const CGROUPS = '/sys/fs/cgroup/numalign';

function run(command, args, status = 0) {
  const result = spawnSync(command, args, { encoding: 'utf8' });
  assert.equal(result.status, status, `${[command, ...args].join(' ')}: ${result.stdout}${result.stderr}`);
  return `${result.stdout}${result.stderr}`;
}

const numalign = (args, status) => run(process.execPath, [MAIN, ...args], status);
const systemctl = (...args) => run('systemctl', args);
const grants = () => JSON.parse(numalign(['status', '--output', 'json'])).grants;
const maskOf = (pid) => /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1];
const commandOf = (pid) => pid > 0 && readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
const pidOf = (unit) => Number(systemctl('show', '--property=MainPID', '--value', unit));

async function until(is, what) {
  for (const end = Date.now() + 60_000; !is(); await setTimeout(200))
    assert.ok(Date.now() < end, `${what} has not come`);
}

test('systemd is the first process', () => {
  assert.equal(readFileSync('/proc/1/comm', 'utf8'), 'systemd\n');
});

test('setup starts the boot unit', async () => {
  // The test before is reported now: the commands block this process.
  await setTimeout(100);
  numalign(['setup', '--reserved', '0']);
  assert.equal(systemctl('is-active', 'numalign.service'), 'active\n');
});

test('a service runs on CPUs of its own, and has them after a restart', async () => {
  const unit = numalign(['systemd-unit', '--cpus', '1', '--name', 'gateway', '--', '/bin/sleep', '100000']);
  writeFileSync(join(UNITS, 'gateway.service'), unit);
  assert.equal(run('systemd-analyze', ['verify', '--man=no', join(UNITS, 'gateway.service')]), '');
  systemctl('daemon-reload');
  systemctl('start', 'gateway');
  // Started is numalign, which becomes the program once it has a grant.
  await until(() => commandOf(pidOf('gateway')) === 'sleep', 'the service');
  const [grant] = grants();
  assert.deepEqual([grant.name, grant.alive], ['gateway', true]);
  assert.equal(maskOf(pidOf('gateway')), grant.cpus);
  systemctl('restart', 'gateway');
  await until(() => commandOf(pidOf('gateway')) === 'sleep', 'the restarted service');
  assert.deepEqual(
    grants().map(({ name, cpus }) => [name, cpus]),
    [['gateway', grant.cpus]],
  );
});

test('setup again, as after an upgrade, leaves the service its process and its CPUs', () => {
  const pid = pidOf('gateway');
  const before = grants();
  assert.match(numalign(['setup', '--reserved', '0']), /^unchanged .*numalign\.service$/m);
  assert.equal(pidOf('gateway'), pid);
  assert.deepEqual(
    grants().map(({ uid, cpus }) => [uid, cpus]),
    before.map(({ uid, cpus }) => [uid, cpus]),
  );
});

test('removal refuses while the service runs, and leaves nothing afterwards', async () => {
  assert.match(numalign(['uninstall'], 1), /gateway.* of process \d+ .*\[ERR_OWNER_ALIVE\]/);
  assert.equal(systemctl('is-active', 'numalign.service'), 'active\n');
  systemctl('stop', 'gateway');
  console.log(numalign(['uninstall']));
  assert.equal(existsSync('/run/numalign'), false);
  assert.equal(existsSync('/run/numalign-root'), false);
  assert.equal(existsSync(CGROUPS), false);
  assert.deepEqual(
    readdirSync(UNITS).filter((name) => name.includes('numalign')),
    [],
  );
  assert.equal(/^numalign:/m.test(readFileSync('/etc/group', 'utf8')), false);
  assert.notEqual(spawnSync('systemctl', ['is-active', 'numalign.service']).status, 0);
});
