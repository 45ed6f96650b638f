// On a machine that systemd has booted: the agent that setup installs gives the CPUs of killed owners
// back while no other program uses numalign, survives being killed, and goes with the rest.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CpuSet } from '../../../dist/index.js';
import { Actor } from './actors.mjs';

const MAIN = fileURLToPath(new URL('../../../packages/cli/dist/main.cjs', import.meta.url));
const AGENT = 'numalign-agent.service';
const UNITS = '/etc/systemd/system';
// Real machines need a tenth of the time, and emulated clocks may run fast.
const BACK_MS = 10_000;
const KILLS = 20;

function run(command, args, status = 0) {
  const { stdout, stderr, status: found } = spawnSync(command, args, { encoding: 'utf8' });
  assert.equal(found, status, `${[command, ...args].join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

const numalign = (args, status) => run(process.execPath, [MAIN, ...args], status);
const shown = (property) => run('systemctl', ['show', `--property=${property}`, '--value', AGENT]).trim();
// Undefined if the process has ended.
function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

const maskOf = (pid) => /^Cpus_allowed_list:\s*(.*)$/m.exec(read(`/proc/${pid}/status`))?.[1];
const agentPid = () => Number(shown('MainPID'));

// Reads only what `is` reads: it uses no numalign.
async function until(is, what, ms = 60_000) {
  const begin = performance.now();
  for (; !is(); await setTimeout(20)) assert.ok(performance.now() - begin < ms, `${what} has not come`);
  return Math.round(performance.now() - begin);
}

// It has written what it watches before it says that.
const agentWatches = () => {
  const journal = spawnSync('journalctl', ['--unit', AGENT, '--output', 'cat', `_PID=${agentPid()}`]);
  return `${journal.stdout}`.includes('watching /run/numalign');
};

// What is ended after the tests.
const started = [];

async function newActor(options) {
  const actor = new Actor();
  started.push(actor.process);
  await actor.open(options);
  return actor;
}

let member;
let wide;

before(async () => {
  // The report of an earlier test: the commands block this process.
  await setTimeout(100);
  numalign(['setup', '--reserved', '0']);
  member = spawn('sleep', ['100000'], { stdio: 'ignore' });
  started.push(member);
  wide = maskOf(member.pid);
  numalign(['share', String(member.pid)]);
});
after(() => {
  for (const each of started) each.kill('SIGKILL');
});

/** Kills an owner and waits until the shared member has all CPUs again. */
async function killAndWait(t, pid, granted, what) {
  assert.equal(CpuSet.parse(maskOf(member.pid)).intersection(CpuSet.parse(granted)).size, 0);
  process.kill(pid, 'SIGKILL');
  const ms = await until(() => maskOf(member.pid) === wide, `the CPUs of ${what}`, BACK_MS);
  t.diagnostic(`${what}: the CPUs were back after ${ms} ms`);
}

test('setup starts the agent, and status and the doctor say so', async () => {
  await until(agentWatches, 'the agent');
  assert.match(numalign(['status']), /numalign-agent\.service/);
  assert.equal(JSON.parse(numalign(['status', '--output', 'json'])).agent, AGENT);
  const doctor = spawnSync(process.execPath, [MAIN, 'doctor'], { encoding: 'utf8' }).stdout;
  assert.match(doctor, /numalign-agent\.service gives CPUs back/);
});

for (const enforcement of ['partition', 'members'])
  test(`a pinned process is killed (${enforcement})`, async (t) => {
    const actor = await newActor({ enforcement });
    const grant = await actor.acquire({ cpu: 1 });
    await actor.grant('pin');
    assert.equal(grant.enforcement, enforcement);
    await killAndWait(t, actor.pid, grant.cpus, 'a pinned process');
  });

test('numalign run is killed, with the command that it has become or that it supervises', async (t) => {
  for (const options of [[], ['--supervise']]) {
    const args = ['run', '--cpus', '1', '--output', 'json', ...options, '--', 'sleep', '100000'];
    const numalignRun = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    started.push(numalignRun);
    const [line] = await once(createInterface({ input: numalignRun.stderr }), 'line');
    const { cpus } = JSON.parse(line);
    const isCommand = (pid) => pid !== String(member.pid) && read(`/proc/${pid}/comm`) === 'sleep\n';
    const commandPid = () => readdirSync('/proc').find((pid) => /^\d+$/.test(pid) && isCommand(pid));
    // With cgroup v2 it moves to its CPUs after its start.
    await until(() => commandPid() !== undefined && maskOf(commandPid()) === cpus, 'the command');
    const pid = Number(commandPid());
    if (options.length > 0) numalignRun.kill('SIGKILL');
    await killAndWait(t, pid, cpus, ['numalign run', ...options].join(' '));
  }
});

test(`killed ${KILLS} times in a row, it is never failed, and works again`, async (t) => {
  for (let kill = 0; kill < KILLS; kill++) {
    const pid = agentPid();
    run('systemctl', ['kill', '--signal=KILL', AGENT]);
    await until(() => ![0, pid].includes(agentPid()), 'the next agent');
    assert.match(shown('ActiveState'), /^(active|activating)$/);
  }
  await until(agentWatches, 'the agent');
  assert.equal(JSON.parse(numalign(['status', '--output', 'json'])).agent, AGENT);
  const actor = await newActor({});
  const { cpus } = await actor.acquire({ cpu: 1 });
  await actor.grant('pin');
  await killAndWait(t, actor.pid, cpus, 'a pinned process');
});

test('uninstall removes it with the rest', async () => {
  const pid = agentPid();
  member.kill();
  await until(() => member.signalCode !== null, 'the end of the shared member');
  console.log(numalign(['uninstall']));
  assert.equal(existsSync(`/proc/${pid}`), false);
  assert.equal(shown('LoadState'), 'not-found');
  assert.deepEqual(
    readdirSync(UNITS, { recursive: true }).filter((name) => name.includes('numalign')),
    [],
  );
  for (const path of ['/run/numalign', '/run/numalign-root', '/sys/fs/cgroup/numalign'])
    assert.equal(existsSync(path), false, path);
  for (const file of ['/etc/sysusers.d/numalign.conf', '/etc/tmpfiles.d/numalign.conf'])
    assert.equal(existsSync(file), false, file);
  assert.equal(/^numalign:/m.test(readFileSync('/etc/group', 'utf8')), false);
});
