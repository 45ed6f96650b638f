// needs: process
// The kernel's notices of owner files, and their gaps.
import { readdirSync, readlinkSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Ledger } from '../../lib/state/ledger.js';
import { OwnerWatch } from '../../lib/state/owners/owner-watch.js';
import { Agent } from '../support/agent.js';
import { canUnshare } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';

async function watched() {
  const stateDir = makeStateDir();
  const agent = new Agent();
  const opened = await agent.tell('open', { stateDir, simulate: 'core:4 pu:1' });
  expect(opened).toBe(agent.process.pid);
  await agent.tell('acquire', { cpu: 1 });
  const events: string[] = [];
  const watch = new OwnerWatch(stateDir, {
    closed: (name) => events.push(`closed ${name}`),
    disturbed: (name) => events.push(`disturbed ${name}`),
    placed: (name) => events.push(`placed ${name}`),
    missed: () => events.push('missed'),
  });
  watch.start();
  onTestFinished(() => watch.stop());
  return { stateDir, agent, watch, events };
}

it('wakes for no commit of a living process, and for no check of owners', async () => {
  const { stateDir, agent, events } = await watched();
  const other = new Agent();
  await other.tell('open', { stateDir, simulate: 'core:4 pu:1' });
  for (let n = 0; n < 5; n++) {
    const { uid } = await agent.tell('acquire', { cpu: 1 });
    await other.tell('grants');
    await agent.tell('release', { uid });
  }
  await new Promise(setImmediate);
  expect(events).toEqual([]);
});

it('gets one notice of the end of a process', async () => {
  const { agent, events } = await watched();
  await agent.kill();
  await expect.poll(() => events).toEqual([expect.stringMatching(/^closed [0-9a-f-]{36}$/)]);
});

it('gets a notice when a file is moved away and when it is back', async () => {
  const { stateDir, agent, events } = await watched();
  const [uuid] = readdirSync(join(stateDir, 'owners'));
  agent.process.kill('SIGSTOP');
  renameSync(join(stateDir, 'owners', uuid!), join(stateDir, 'away'));
  renameSync(join(stateDir, 'away'), join(stateDir, 'owners', uuid!));
  await expect.poll(() => events).toEqual([`disturbed ${uuid}`, `placed ${uuid}`]);
  agent.process.kill('SIGCONT');
});

it('gets a notice when its folder is moved away, and none after it was stopped', async () => {
  const { stateDir, agent, watch, events } = await watched();
  watch.stop();
  await agent.kill();
  await new Promise(setImmediate);
  expect(events).toEqual([]);
  watch.start();
  renameSync(stateDir, join(stateDir, '../away'));
  await expect.poll(() => events).toEqual(['disturbed undefined']);
});

/** The number of inotify instances of this process. */
const instances = () =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === 'anon_inode:inotify';
    } catch {
      return false;
    }
  }).length;

it('takes one inotify instance for all folders, and none after the last', async () => {
  // Earlier tests have closed theirs in a turn of the event loop.
  await expect.poll(instances).toBe(0);
  const all = await Promise.all([watched(), watched(), watched()]);
  expect(instances()).toBe(1);
  for (const { watch } of all.slice(1)) watch.stop();
  await all[1]!.agent.kill();
  await all[0]!.agent.kill();
  await expect.poll(() => all[0]!.events).toHaveLength(1);
  expect(all[1]!.events).toEqual([]);
  all[0]!.watch.stop();
  await expect.poll(instances).toBe(0);
});

it('takes no further instance for files that are watched in the same turn of the event loop', async () => {
  const { stateDir, watch: first } = await watched();
  first.stop();
  for (let i = 0; i < 3; i += 1) {
    const watch = new OwnerWatch(stateDir, { closed() {}, disturbed() {}, placed() {}, missed() {} });
    watch.start();
    watch.stop();
    expect(instances()).toBe(1);
  }
});

it.runIf(canUnshare)('checks for dead owners if the user has no inotify instance left', async () => {
  const { stateDir, agent } = await watched();
  const limited = 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$0" "$@"';
  const other = new Agent(['unshare', '--user', '--map-root-user', 'sh', '-c', limited]);
  await other.tell('open', { stateDir, simulate: 'core:4 pu:1' });
  expect(await other.tell('grants')).toHaveLength(1);
  await agent.kill();
  await expect.poll(() => other.tell('grants')).toEqual([]);
});

it('informs listeners of an owner that ended before', async () => {
  const { stateDir, agent, watch } = await watched();
  watch.stop();
  await agent.kill();
  let calls = 0;
  onTestFinished(Ledger.open(stateDir).watchOwners(() => void calls++));
  await expect.poll(() => calls).toBe(1);
});
