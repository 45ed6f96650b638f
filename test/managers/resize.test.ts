// needs: agents
import { describe, expect, it, onTestFinished } from 'vitest';
import { resize } from '../../lib/admission/grants/resize.js';
import type { Host } from '../../lib/admission/host.js';
import { HintProviders } from '../../lib/decision/hints/hint-providers.js';
import { noEnforcer } from '../../lib/enforcement/enforcer.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { type CpuSet, type Manager, openManager } from '../../lib/index.js';
import { parseConfig } from '../../lib/input/config.js';
import { NO_QUIETER } from '../../lib/quiet/quieter.js';
import { Ledger } from '../../lib/state/ledger.js';
import { Agent } from '../support/agent.js';
import { changed } from '../support/changed.js';
import { errorOf } from '../support/error-of.js';
import { breakCommits } from '../support/full-disk.js';
import { GI, MI, machineOf } from '../support/memory-machine.js';
import { makeStateDir } from '../support/state-dir.js';

const HUGE = 'hugepages-2Mi';

const twoNodes = (hugepages: Record<number, number> = {}) =>
  machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI, hugepages })));

async function open(topology: Topology, stateDir = makeStateDir()): Promise<Manager> {
  const manager = await openManager({ topology, stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

describe('a resize to no memory', () => {
  it('takes all memory from the grant, and leaves it to others', async () => {
    const manager = await open(await twoNodes());
    const grant = await manager.acquire({ cpu: 1, memory: '6Gi' });
    await grant.resize({ memory: 0 });
    expect(grant.memory).toEqual([]);
    expect(manager.memory().map(({ reserved }) => reserved)).toEqual([0, 0]);
  });

  it('keeps the hugepages, which the request does not mention', async () => {
    const manager = await open(await twoNodes({ 2048: 64 }));
    const grant = await manager.acquire({ cpu: 1, memory: '1Gi', resources: { [HUGE]: '128Mi' } });
    await grant.resize({ memory: 0 });
    expect(grant.memory.map(({ type, bytes }) => [type, bytes])).toEqual([[HUGE, 128 * MI]]);
    const reserved = manager.memory().filter((table) => table.reserved > 0);
    expect(reserved.map((table) => [table.type, table.reserved])).toEqual([[HUGE, 128 * MI]]);
  });
});

describe('a grant that grows', () => {
  // The other node has less room, and would be filled first without the grant.
  it.each(['none', 'best-effort'] as const)('takes CPUs near its own, with policy %s', async (policy) => {
    const manager = await open(await twoNodes());
    const other = await manager.acquire({ cpu: 4, policy: 'single-numa-node' });
    const grant = await manager.acquire({ cpu: 2, policy });
    await other.resize({ cpu: 3 });
    expect(String(grant.cpus)).toBe('4-5');
    await grant.resize({ cpu: 3 });
    expect(String(grant.cpus)).toBe('4-6');
  });
});

describe('a grant that grows in a process that may not use all CPUs', () => {
  const confined = async () => {
    const topology = await discover({ synthetic: 'numa:1 core:4 pu:1' });
    return open(await discover({ json: { ...topology.toJSON(), allowed: '0-1' } }));
  };

  it('takes any CPUs if its owner is not the process', async () => {
    const manager = await confined();
    const containers = [{ name: 'main', limits: { cpu: 2 } }];
    await manager.admit({ uid: 'a', qosClass: 'Guaranteed', containers }, { owner: 'persistent' });
    await manager.grant('a').resize({ cpu: 3 });
    expect(manager.pod('a').containers[0]!.cpus!.size).toBe(3);
  });

  it('takes no others if the process is its owner', async () => {
    const manager = await confined();
    const grant = await manager.acquire({ cpu: 2 });
    expect(await errorOf(() => grant.resize({ cpu: 3 }))).toMatchObject({ code: 'ERR_INSUFFICIENT_CPUS' });
  });
});

describe('a grant that shrinks', () => {
  // The kubelet's proposal keeps a container's initial CPUs.
  it('keeps the CPUs that fit best together, whichever it had first, and may end with fewer than it had first', async () => {
    const manager = await open(await discover({ synthetic: 'numa:1 core:4 pu:2' }));
    await manager.acquire({ cpu: 1 });
    const grant = await manager.acquire({ cpu: 1 });
    expect(String(grant.cpus)).toBe('1');
    await grant.resize({ cpu: 3 });
    expect(String(grant.cpus)).toBe('1-3');
    await grant.resize({ cpu: 2 });
    expect(String(grant.cpus)).toBe('2-3');
    await grant.resize({ cpu: 1 });
    expect(grant.cpus.size).toBe(1);
  });
});

describe('a resize that another process has announced', () => {
  it('keeps others from resizing the grant, and completes nevertheless', async () => {
    const stateDir = makeStateDir();
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: 'package:2 [numa(memory=8GiB)] core:4 pu:1' });
    const { uid } = await agent.tell('acquire', { cpu: 2, owner: 'persistent' });
    const manager = await open(
      await discover({ synthetic: 'package:2 [numa(memory=8GiB)] core:4 pu:1' }),
      stateDir,
    );
    const resizing = agent.ask('resize', { uid, cpu: 3, noticeMs: 2_000 });
    await changed(manager, () => manager.grants()[0]!.upcoming !== null);
    const error = await errorOf(() => manager.grant(uid).resize({ cpu: 4 }));
    expect(error).toMatchObject({ code: 'ERR_GRANT_BUSY', details: { value: uid } });
    expect(manager.grants()[0]!.upcoming!.size).toBe(3);
    expect((await resizing).error).toBeUndefined();
    expect(manager.grants()[0]!.cpus.size).toBe(3);
  });
});

describe('a resize that cannot be committed', () => {
  /** Grants of the manager without handles: threads here are a set of CPUs. */
  const hostOf = ({ topology, stateDir }: Manager): Host => ({
    managerId: 0,
    topology,
    ledger: Ledger.open(stateDir),
    enforcer: noEnforcer(),
    quieter: NO_QUIETER,
    enforcement: { enforcement: 'recorded', require: 'recorded', unmovableMembers: 'report' },
    resources: new Map(),
    providers: new HintProviders(),
    lockTimeoutMs: 60_000,
  });

  const DEFAULTS = parseConfig({}).placement;

  it.each([
    ['shrinks', 2],
    ['grows', 6],
  ])('lets the threads use all CPUs of the grant again: one that %s', async (_, cpu) => {
    const manager = await open(await twoNodes());
    const grant = await manager.acquire({ cpu: 4 });
    const { ledger, ...host } = hostOf(manager);
    const [pod] = ledger.read()!.assignments.pods;
    let threadsOn = grant.cpus;
    let repair = () => {};
    const followers = {
      narrow: (cpus: CpuSet) => {
        threadsOn = cpus;
        // The threads have left; the commit comes next.
        if (cpu < 4) repair = breakCommits(manager.stateDir);
      },
      widen: (cpus: CpuSet) => {
        threadsOn = cpus;
      },
    };
    const request = { cpu, memory: undefined, noticeMs: 500, signal: undefined };
    const outcome = errorOf(() =>
      resize({ host: { ...host, ledger }, grant: pod!, request, defaults: DEFAULTS, followers }),
    );
    await changed(manager, () => grant.upcoming !== null);
    if (cpu > 4) repair = breakCommits(manager.stateDir);
    expect((await outcome).code).toMatch(/^ERR_S/);
    expect(String(threadsOn)).toBe(String(grant.cpus));
    expect(grant.cpus.size).toBe(4);
    repair();
    await grant.release();
  });
});
