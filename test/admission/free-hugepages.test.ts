// needs: machine
// Hugepages of this machine: the kernel's free pages are read, and the pool is restored.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freeHugepages as freeNow } from '../../lib/admission/free-hugepages.js';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, type ManagerOptions, openManager } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { canReserve, HUGEPAGE, reserveHugepages } from '../support/hugepages.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const DIST = new URL('../../dist/', import.meta.url).href;
const HUGE = 'hugepages-2Mi';
const pages = (count: number) => count * HUGEPAGE;
const ask = (count: number) => ({ cpu: 1, resources: { [HUGE]: pages(count) } });

/** From the current machine; the pool can shrink later. */
async function open(options: ManagerOptions = {}): Promise<Manager> {
  const manager = await openManager({ stateDir: makeStateDir(), topology: await discover(), ...options });
  onTestFinished(() => manager.close());
  return manager;
}

/** Makes another process reserve some without touching them, until the test is over. */
async function mapHugepages(count: number): Promise<void> {
  const code = `import mmap, sys; m = mmap.mmap(-1, ${count} << 21, flags=0x40022); print("mapped", flush=True); sys.stdin.read()`;
  const child = spawn('python3', ['-c', code], { stdio: ['pipe', 'pipe', 'inherit'] });
  const isGone = once(child, 'exit');
  onTestFinished(async () => {
    child.stdin.end();
    await isGone;
  });
  await Promise.race([once(child.stdout, 'data'), isGone]);
  expect(child.exitCode).toBe(null);
}

describe.skipIf(!canReserve())('fewer free hugepages in the kernel than on record', () => {
  it('refuse a strict request, and admit another one with a warning', async () => {
    reserveHugepages(8);
    const manager = await open();
    reserveHugepages(3);
    const error = await errorOf(() => manager.acquire({ ...ask(4), strictHugepages: true }));
    expect(error).toMatchObject({
      code: 'ERR_INSUFFICIENT_MEMORY',
      details: { reason: 'UnexpectedAdmissionError', free: { 0: { [HUGE]: pages(3) } } },
    });
    const fitting = await manager.acquire({ ...ask(3), strictHugepages: true });
    await fitting.release();
    const grant = await manager.acquire(ask(4));
    expect(grant.warnings).toMatchObject([{ code: 'HUGEPAGES_TAKEN', free: pages(3), expected: pages(8) }]);
    await grant.release();
  });

  it('count for a strict manager in plans and admissions, unless a request says otherwise', async () => {
    reserveHugepages(8);
    const manager = await open({ strictHugepages: true });
    reserveHugepages(3);
    const pod = { containers: [guaranteed('main', { [HUGE]: pages(4), cpu: '500m' })] };
    expect(manager.plan(pod)).toMatchObject({ admitted: false, code: 'ERR_INSUFFICIENT_MEMORY' });
    expect(manager.plan(pod, { strictHugepages: false }).admitted).toBe(true);
    expect((await errorOf(() => manager.admit(pod))).code).toBe('ERR_INSUFFICIENT_MEMORY');
    // As soon as they are free again.
    reserveHugepages(4);
    await (await manager.admit(pod)).release();
  });

  it('do not include pages that a process has mapped but not touched, for a strict request', async () => {
    reserveHugepages(8);
    const manager = await open({ strictHugepages: true });
    await mapHugepages(5);
    expect(await errorOf(() => manager.acquire(ask(4)))).toMatchObject({
      code: 'ERR_INSUFFICIENT_MEMORY',
      details: { free: { 0: { [HUGE]: pages(3) } } },
    });
    const grant = await manager.acquire(ask(3));
    expect(grant.warnings).toMatchObject([{ code: 'HUGEPAGES_TAKEN', free: pages(3), expected: pages(8) }]);
    await grant.release();
  });

  it('count for a strict pod that requests them as a whole, too', async () => {
    reserveHugepages(8);
    const manager = await open({
      ...{ strictHugepages: true, scope: 'pod', policy: 'best-effort' },
      featureGates: { PodLevelResourceManagers: true },
    });
    reserveHugepages(3);
    const whole = (count: number) => ({
      resources: { limits: { cpu: '500m', memory: '16Mi', [HUGE]: pages(count) } },
      containers: [{ name: 'main' }],
    });
    expect(manager.plan(whole(4))).toMatchObject({ admitted: false, code: 'ERR_INSUFFICIENT_MEMORY' });
    expect(manager.plan(whole(3)).admitted).toBe(true);
  });

  it('let a strict request wait: the pages come back', async () => {
    reserveHugepages(8);
    const manager = await open({ strictHugepages: true });
    const other = await manager.acquire(ask(1));
    reserveHugepages(3);
    const second = manager.acquire({ ...ask(4), wait: true });
    await expect.poll(() => manager.status().waiting.length).toBe(1);
    reserveHugepages(4);
    // It is tried again at each release.
    await other.release();
    await (await second).release();
  });

  it('flag a grant with pages there until the kernel has enough again', async () => {
    reserveHugepages(8);
    const manager = await open();
    const grant = await manager.acquire(ask(4));
    const other = await manager.acquire({ cpu: 1 }).catch(() => undefined);
    expect(grant.flags()).toEqual([]);
    reserveHugepages(3);
    const flag = { code: 'HUGEPAGES_TAKEN', resource: HUGE, nodes: [0], free: pages(3), expected: pages(4) };
    expect(grant.flags()).toMatchObject([flag]);
    expect(other?.flags() ?? []).toEqual([]);
    expect(manager.grants().find(({ uid }) => uid === grant.uid)!.flags).toMatchObject([flag]);
    const again = await openManager({
      stateDir: manager.stateDir,
      topology: manager.topology,
      readOnly: true,
    });
    onTestFinished(() => again.close());
    expect(again.warnings).toMatchObject([{ code: 'GRANT_FLAGGED', uid: grant.uid, flags: [flag] }]);
    reserveHugepages(4);
    expect(grant.flags()).toEqual([]);
    await other?.release();
    await grant.release();
  });
});

it.skipIf(!canReserve())('give listeners such a flag with the next change', async () => {
  reserveHugepages(8);
  const manager = await open();
  const grant = await manager.acquire(ask(4));
  const flagged: (readonly string[])[] = [];
  manager.on('change', (change) => flagged.push(change.flagged.map(({ uid }) => uid)));
  const commit = async () => {
    const { length } = flagged;
    const pod = await manager.admit({ containers: [guaranteed('main', { cpu: '500m' })] });
    await expect.poll(() => flagged.length).toBeGreaterThan(length);
    await pod.release();
  };
  await commit();
  expect(flagged.flat()).toEqual([]);
  reserveHugepages(3);
  await commit();
  expect(flagged.flat()).toEqual([grant.uid]);
  manager.removeAllListeners('change');
  await grant.release();
});

describe.skipIf(!canReserve())(
  'the command line, while another process uses hugepages that it has not booked',
  () => {
    it('refuses under --strict to run and to plan requests that the free pages cannot serve', () => {
      reserveHugepages(8);
      const stateDir = makeStateDir();
      const limits = { cpu: '500m', memory: '16Mi', [HUGE]: '8Mi' };
      const pod = JSON.stringify({
        kind: 'Pod',
        spec: { containers: [{ name: 'main', resources: { limits } }] },
      });
      const code = `
      import { spawnSync } from 'node:child_process';
      import { openManager } from ${JSON.stringify(`${DIST}index.js`)};
      const stateDir = ${JSON.stringify(stateDir)};
      const manager = await openManager({ stateDir });
      const grant = await manager.acquire({ cpu: 1 });
      const taken = grant.buffer('10Mi', { pageSize: '2Mi' });
      await grant.release();
      const numalign = (...args) =>
        spawnSync(process.execPath, [${JSON.stringify(`${fileURLToPath(DIST)}../packages/cli/dist/main.cjs`)}, ...args], {
          input: ${JSON.stringify(pod)},
          encoding: 'utf8',
        });
      const run = ['run', '--state-dir', stateDir, '--cpus', '1', '--resource', '${HUGE}=8Mi'];
      const plan = ['plan', '--state-dir', stateDir, '-f', '-', '--output', 'json'];
      const answers = ['--strict-hugepages', undefined].map((flag) => {
        const flags = flag ? [flag] : [];
        const ran = numalign(...run, ...flags, '--', 'true');
        const planned = JSON.parse(numalign(...plan, ...flags).stdout).pods[0];
        return [ran.status === 0, /ERR_INSUFFICIENT_MEMORY/.test(ran.stderr), planned.admitted, planned.code];
      });
      console.log(JSON.stringify([answers, taken.length]));`;
      const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
        encoding: 'utf8',
      });
      expect(stderr).toBe('');
      expect(JSON.parse(stdout)).toEqual([
        [
          [false, true, false, 'ERR_INSUFFICIENT_MEMORY'],
          [true, false, true, null],
        ],
        5 * HUGEPAGE,
      ]);
    });
  },
);

it('the record counts for a described machine, and nothing is read', async () => {
  const described = await machineOf([{ cpus: 2, memory: GI, hugepages: { 2048: 64 } }]);
  expect(freeNow(described, [HUGE]).size).toBe(0);
  const manager = await simulate(described, { strictHugepages: true });
  const grant = await manager.acquire(ask(64));
  expect(grant.flags()).toEqual([]);
});

it('nothing is read for other resources than hugepages', async () => {
  const topology = await discover();
  expect(freeNow(topology, ['cpu', 'memory', 'example.com/nic']).size).toBe(0);
});

it('the option must be true or false', async () => {
  const manager = await simulate('numa:1 core:2 pu:1');
  expect(await errorOf(() => manager.acquire({ ...ask(1), strictHugepages: 'no' as never }))).toMatchObject({
    code: 'ERR_INVALID_OPTION',
    details: { option: 'strictHugepages' },
  });
});
