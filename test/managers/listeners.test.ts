// needs: process
// The events of listeners, and that nothing else wakes a process.
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { type GrantInfo, type Manager, type ManagerOptions, openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { budget } from '../support/budget.mjs';
import { canUnshare } from '../support/rights.js';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const MACHINE = 'package:2 [numa(memory=8GiB)] core:4 pu:1';
const NIC = 'example.com/nic';

const flagsOf = ({ flags }: GrantInfo) => flags.map(({ message }) => message);

/** A listener's view of all its events: the flags of each grant by its id. */
function reportedFlags(manager: Manager) {
  const flags = new Map(manager.grants().map((info) => [info.uid, flagsOf(info)]));
  const last = { generation: manager.generation() };
  manager.on('change', ({ generation, added, removed, changed, flagged }) => {
    for (const { uid } of removed) flags.delete(uid);
    for (const info of [...added, ...changed.map(({ after }) => after), ...flagged]) {
      flags.set(info.uid, flagsOf(info));
    }
    last.generation = generation;
  });
  return { flags, last };
}

const nics = (ill: boolean) => [
  { id: 'a', numaNodes: [0], healthy: !ill },
  { id: 'b', numaNodes: [1] },
];

// Of two managers of one state, whose grants have memory and devices.
const STEPS = {
  acquire: (manager: Manager) => manager.acquire({ cpu: 1, memory: '1Gi' }),
  acquireNear: (manager: Manager) => manager.acquire({ cpu: 1, memory: '1Gi', resources: { [NIC]: 1 } }),
  release: async (manager: Manager) => {
    const [first] = manager.grants();
    if (first) await manager.release(first.uid);
  },
  resize: async (_: Manager, grants: readonly { resize(to: object): Promise<unknown> }[]) =>
    grants.at(-1)?.resize({ cpu: 2, memory: '2Gi', noticeMs: 0 }),
  reserveMemory: (manager: Manager) =>
    manager.configure({ reservedMemory: [{ numaNode: 0, limits: { memory: '7680Mi' } }] }),
  reserveCpu: (manager: Manager) => manager.configure({ reservedSystemCPUs: '0' }),
  reserveNothing: (manager: Manager) => manager.configure({ reservedMemory: [], reservedSystemCPUs: '' }),
};

describe("manager.on('change')", () => {
  it('reports every new and ended flag, with any commit', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...(Object.keys(STEPS) as (keyof typeof STEPS)[])), fc.boolean()), {
          maxLength: 12,
        }),
        async (steps) => {
          const options = {
            memoryManagerPolicy: 'Static',
            devices: { [NIC]: nics(false) },
          } as ManagerOptions;
          const topology = await discover({ synthetic: MACHINE });
          const stateDir = makeStateDir();
          const [one, other] = [
            await openManager({ topology, stateDir, ...options }),
            await openManager({ topology, stateDir, ...options }),
          ];
          try {
            const { flags, last } = reportedFlags(one);
            const grants: any[] = [];
            for (const [step, isOwn] of steps) {
              const done: any = await STEPS[step](isOwn ? one : other, grants).catch(() => undefined);
              if (step.startsWith('acquire') && done) grants.push(done);
              while (last.generation !== one.generation()) await new Promise(setImmediate);
              expect(flags).toEqual(new Map(one.grants().map((info) => [info.uid, flagsOf(info)])));
            }
          } finally {
            one.close();
            other.close();
          }
        },
      ),
      {
        numRuns: 25,
        examples: [
          [
            [
              ['acquire', true],
              ['acquire', false],
              ['reserveMemory', true],
              ['release', false],
              ['reserveNothing', true],
            ],
          ],
        ],
      },
    );
  });

  it('reports a device that becomes unhealthy, and healthy again, without any commit', async () => {
    const manager = await simulate(MACHINE, { devices: { [NIC]: nics(false) } });
    const grant = await manager.acquire({ cpu: 1, resources: { [NIC]: 2 } });
    const flagged: (readonly GrantInfo[])[] = [];
    manager.on('change', (change) => flagged.push(change.flagged));
    manager.registerDevices(NIC, nics(true));
    await expect.poll(() => flagged).toMatchObject([[{ uid: grant.uid, flags: [{ ill: ['a'] }] }]]);
    manager.registerDevices(NIC, nics(false));
    await expect.poll(() => flagged.slice(1)).toMatchObject([[{ uid: grant.uid, flags: [] }]]);
  });

  it('reports every one of many commits of another process', async () => {
    const stateDir = makeStateDir();
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: 'core:4 pu:1' });
    const manager = await openManager({ topology: await discover({ synthetic: 'core:4 pu:1' }), stateDir });
    onTestFinished(() => manager.close());
    const generations: number[] = [];
    let wake = () => {};
    manager.on('change', ({ before, generation }) => {
      generations.push(before, generation);
      wake();
    });
    for (let n = 0; n < budget({ all: 40, usual: 8 }); n++) {
      const { uid } = await agent.tell('acquire', { cpu: 1 });
      const at = manager.generation();
      while (generations.at(-1) !== at) await new Promise<void>((resolve) => (wake = resolve));
      await agent.tell('release', { uid });
    }
    // Each change begins where the one before has ended.
    for (let i = 2; i < generations.length; i += 2) expect(generations[i]).toBe(generations[i - 1]);
  });

  it.runIf(canUnshare)('reports commits even if the user has no inotify instance left', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ topology: await discover({ synthetic: 'core:4 pu:1' }), stateDir });
    onTestFinished(() => manager.close());
    const limited = 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$0" "$@"';
    const other = new Agent(['unshare', '--user', '--map-root-user', 'sh', '-c', limited]);
    await other.tell('open', { stateDir, simulate: 'core:4 pu:1' });
    await other.tell('watch');
    const { uid } = await manager.acquire({ cpu: 1 });
    await expect
      .poll(async () => (await other.tell('changes')).flatMap(({ added }: any) => added))
      .toMatchObject([{ uid }]);
  });
});

/** The periods of all timers that start while `open` runs and are still running at its end. */
async function timersOf(open: () => Promise<Manager>): Promise<number[]> {
  const spies = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'setInterval')];
  try {
    const manager = await open();
    onTestFinished(() => manager.close());
    const timers = spies.flatMap(({ mock }) => mock.results.map(({ value }) => value));
    // Short tasks are done by now.
    await expect
      .poll(() => timers.filter((timer) => !timer._destroyed && timer._idleTimeout < 10_000), {
        timeout: 5000,
      })
      .toEqual([]);
    return timers.filter((timer) => !timer._destroyed).map((timer) => timer._idleTimeout);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

describe('an idle open manager', () => {
  it.each([
    ['there is no listener', false],
    ['there is a listener', true],
  ])('has one timer, of about half a minute, if %s', async (_, isListening) => {
    const timers = await timersOf(async () => {
      const manager = await openManager({ stateDir: makeStateDir() });
      if (isListening) manager.on('change', () => {});
      return manager;
    });
    const waking = timers.filter((period) => period < 2 ** 31 - 1);
    expect(waking).toHaveLength(1);
    expect(waking[0]).toBeGreaterThanOrEqual(27_000);
  });

  it('of a simulated machine has none that ever fires', async () => {
    const timers = await timersOf(async () => {
      const manager = await openManager({
        topology: await discover({ synthetic: MACHINE }),
        stateDir: makeStateDir(),
      });
      manager.on('change', () => {});
      return manager;
    });
    expect(timers.filter((period) => period < 2 ** 31 - 1)).toEqual([]);
  });
});
