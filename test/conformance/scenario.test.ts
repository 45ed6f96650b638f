// needs: nothing
import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { budget } from '../support/budget.mjs';
import * as numalign from '../support/package.js';
import type { Case, Numalign } from './case.js';
import { contextOf } from './read.js';
import { readCases, replay } from './replay.js';
import { rewrite, writePods } from './state-file.js';
import { type Fields, fileOf, outcomeOf, run, vectors } from './support/cases.js';

type Options = numalign.ManagerOptions;
type Manager = numalign.Manager;
type PlainPod = { uid: string; initContainers: { restartPolicy?: string }[]; containers: unknown[] };

const file = readCases(vectors('scenario'))!;
const isAboutCpus = ({ config, machine }: Case) =>
  (config as Fields).memoryPolicy === 'None' &&
  ((machine as Fields).deviceResources as unknown[]).length === 0;
const ofCpus = { ...file, cases: file.cases.filter(isAboutCpus) };
/** Where it frees memory that containers start. */
const isFreeing = ({ steps }: Case) =>
  (steps as { op: string; result: Fields }[]).some(({ op, result }, i, all) => {
    return (
      op === 'start' && JSON.stringify(result.memoryFree) !== JSON.stringify(all[i - 1]?.result.memoryFree)
    );
  });
// A part of the others, for the time it takes.
const ofMemoryAndDevices = {
  ...file,
  cases: file.cases
    .filter((vector) => !isAboutCpus(vector))
    .filter((vector, i) => i % 12 === 0 || isFreeing(vector)),
};

/** The package with other options for openManager. */
function withOptions(change: (options: Options) => Options): Numalign {
  return { ...numalign, openManager: (options = {}) => numalign.openManager(change(options)) };
}

/** The package with managers that do some things in another way; `change` gets the true one. */
function withManager(change: (manager: Manager) => Partial<Record<keyof Manager, unknown>>): Numalign {
  const openManager = async (options?: Options) => {
    const manager = await numalign.openManager(options);
    const changed = change(manager);
    return new Proxy(manager, {
      get(target, name) {
        if (name in changed) return changed[name as keyof Manager];
        const value = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  };
  return { ...numalign, openManager };
}

/** ... with an admit that does something else. */
const withAdmit = (admit: (manager: Manager, pod: PlainPod, options: object) => Promise<unknown>) =>
  withManager((manager) => ({ admit: (pod: PlainPod, options: object) => admit(manager, pod, options) }));

const isPlaced = (manager: Manager, pod: PlainPod) => manager.grants().some(({ uid: id }) => id === pod.uid);

/** The package, which on opening a folder again first does something to it. */
function beforeReopening(change: (stateDir: string) => void): Numalign {
  return withOptions((options) => {
    if (existsSync(join(options.stateDir!, 'state.json'))) change(options.stateDir!);
    return options;
  });
}

type Pod = numalign.Pod;
type Devices = { id: string; numaNodes: number[] | null }[];

/** ... with pods that answer something else for their containers once they are admitted. */
function withPods(change: (pod: Pod) => unknown): Numalign {
  return withManager((manager) => ({
    admit: async (pod: never, options: object) => change(await manager.admit(pod, options)),
  }));
}

/** A pod that does not tell one thing. */
const without =
  (member: 'memory' | 'devices', value: unknown) => (pod: { readonly containers: readonly object[] }) => {
    return { ...pod, containers: pod.containers.map((container) => ({ ...container, [member]: value })) };
  };

/** A pod to which no container ever starts. */
function unstarted(manager: Manager, uid: string) {
  const pod = manager.pod(uid);
  return {
    containers: pod.containers,
    container: (name: string) => pod.container(name),
    markStarted: async () => {},
  };
}

/** ... that leaves some resources out of what is asked for. */
const withoutResources = (isLeftOut: (resource: string) => boolean) =>
  withAdmit((manager, pod, options) => {
    const rest = (amounts: object) =>
      Object.fromEntries(Object.entries(amounts).filter(([name]) => !isLeftOut(name)));
    const strip = ({ requests, limits, ...container }: any) => {
      return { ...container, requests: rest(requests), limits: rest(limits) };
    };
    const { initContainers, containers } = pod;
    const spec = { ...pod, initContainers: initContainers.map(strip), containers: containers.map(strip) };
    return manager.admit(spec as never, options);
  });

/** ... that registers other devices. */
const withRegistration = (change: (devices: Devices) => Devices, others = (options: object) => options) =>
  withManager((manager) => ({
    registerDevices: (resource: string, devices: Devices, options: object) =>
      manager.registerDevices(resource, change(devices), others(options)),
  }));

/** ... that takes no registration on a folder that it has opened before. */
function onlyOnce(): Numalign {
  const opened = new Map<string, number>();
  return withManager((manager) => {
    const times = (opened.get(manager.stateDir) ?? 0) + 1;
    opened.set(manager.stateDir, times);
    return times > 1 ? { registerDevices: () => {} } : {};
  });
}

const withStateAtRestart = (change: Parameters<typeof rewrite>[1]) =>
  beforeReopening((stateDir) => rewrite(stateDir, change));

// How many failures show that a fault is noticed, for the time it takes to come to more.
const enough = (ofAll: number) => budget({ all: ofAll, usual: Math.ceil(ofAll / 5) });

describe('the recorded cases of scenario', () => {
  it('fail if a recorded result is altered and none of the known differences explains it', async () => {
    const context = contextOf(file.path, numalign);
    const notNoticed: string[] = [];
    let checked = 0;
    const irregular = ['2s-6c2t-offline', 'hybrid-8p8e', 'harvested-l3', 'uneven-numa'];
    const regular = [...ofCpus.cases, ...ofMemoryAndDevices.cases].filter((vector) => {
      const { config, machine } = vector as unknown as { config: Fields; machine: Fields };
      const options = config.cpuPolicyOptions as Fields;
      const isRegular = !('full-pcpus-only' in options) && !irregular.includes(machine.topology as string);
      return isRegular && (vector.steps as unknown[]).length > 0;
    });
    // A part of them, another one in each run, for the time it takes.
    const parts = budget({ all: 1, usual: 32 });
    const which = randomInt(parts);
    const part = regular.filter((_, i) => i % parts === which);
    expect(part.length).toBeGreaterThan(0);
    for (const vector of part) {
      const { config } = vector as unknown as { config: Fields };
      const steps = vector.steps as { op: string; result: Record<string, any> }[];
      // One alteration of each kind, at the last step where it can be made.
      const kinds: ((result: Record<string, any>) => Fields | undefined)[] = [
        ({ admitted }) => (admitted === undefined ? undefined : { admitted: !admitted }),
        ({ reason }) => (reason ? { reason: 'UnexpectedError' } : undefined),
        ({ defaultCpuSet }) =>
          config.cpuPolicy === 'static' ? { defaultCpuSet: defaultCpuSet + ',600' } : undefined,
        ({ containers }) =>
          containers && { containers: { ...containers, more: Object.values(containers)[0] } },
        ({ containers }) => {
          const [name, holding] = Object.entries<any>(containers ?? {}).at(-1) ?? [];
          return (
            name && { containers: { ...containers, [name]: { ...holding, cpus: holding.cpus ? null : '0' } } }
          );
        },
        ({ containers }) => {
          const [name, holding] = Object.entries<any>(containers ?? {}).at(-1) ?? [];
          const hint = { ...holding?.hint, preferred: !holding?.hint.preferred };
          return name && { containers: { ...containers, [name]: { ...holding, hint } } };
        },
        ({ containers }) => {
          const [name, holding] = Object.entries<any>(containers ?? {}).at(-1) ?? [];
          const block = { numaAffinity: [0], type: 'memory', size: 1 };
          const memoryBlocks = holding?.memoryBlocks ? null : [block];
          return name && { containers: { ...containers, [name]: { ...holding, memoryBlocks } } };
        },
        ({ containers }) => {
          const [name, holding] =
            Object.entries<any>(containers ?? {}).find(([, { memoryBlocks }]) => memoryBlocks) ?? [];
          const memoryBlocks = holding?.memoryBlocks.map((block: Fields) => ({
            ...block,
            size: Number(block.size) + 1,
          }));
          return name && { containers: { ...containers, [name]: { ...holding, memoryBlocks } } };
        },
        ({ containers }) => {
          const [name, holding] = Object.entries<any>(containers ?? {}).at(-1) ?? [];
          const devices = { ...holding?.devices, 'example.com/gpu': { ids: null, perNuma: { 77: 1 } } };
          return name && { containers: { ...containers, [name]: { ...holding, devices } } };
        },
        ({ memoryFree }) => {
          const [node, types] = Object.entries<any>(memoryFree ?? {}).at(-1) ?? [];
          return node && { memoryFree: { ...memoryFree, [node]: { ...types, memory: types.memory - 1 } } };
        },
        ({ cpuCheckpoint }) => cpuCheckpoint && { cpuCheckpoint: cpuCheckpoint.replace(/\d\}$/, '"}') },
        ({ memoryCheckpoint }) => memoryCheckpoint && { memoryCheckpoint: `${memoryCheckpoint} ` },
      ];
      for (const [kind, alter] of kinds.entries()) {
        const at = steps.findLastIndex(({ op, result }) => op !== 'readmit' && alter(result));
        if (at < 0) continue;
        const { result, ...step } = steps[at]!;
        const altered = steps.with(at, { ...step, result: { ...result, ...alter(result) } });
        const { outcome } = await file.kind.run({ ...vector, steps: altered } as Case, context);
        checked += 1;
        if (outcome !== 'failed') notNoticed.push(`${vector.id} ${at} ${kind}`);
      }
    }
    expect(notNoticed).toEqual([]);
    expect(checked).toBeGreaterThan(2 * part.length);
  });

  it.each<[string, number, Numalign]>([
    ['ignores the topology policy', 10, withOptions((options) => ({ ...options, policy: 'none' }))],
    [
      'admits under restricted what best-effort does',
      2,
      withOptions((options) =>
        options.policy === 'restricted' ? { ...options, policy: 'best-effort' } : options,
      ),
    ],
    ['forgets the scope of pods', 3, withOptions((options) => ({ ...options, scope: 'container' }))],
    ['takes every scope for that of pods', 3, withOptions((options) => ({ ...options, scope: 'pod' }))],
    [
      'ignores the options of the CPU Manager',
      5,
      withOptions((options) => ({ ...options, cpuManagerPolicyOptions: {} })),
    ],
    [
      'starts with options that exclude each other',
      4,
      withOptions(({ cpuManagerPolicyOptions = {}, ...options }) => {
        const { 'align-by-socket': _, ...others } = cpuManagerPolicyOptions;
        return { ...options, cpuManagerPolicyOptions: others };
      }),
    ],
    [
      'hands out reserved CPUs',
      10,
      {
        ...numalign,
        openManager: async (options = {}) => {
          const { reservedSystemCPUs: _, systemReserved: __, ...others } = options;
          const stateDir = `${options.stateDir}-reserved`;
          const settings = (await numalign.openManager({ ...options, stateDir })).settings();
          const manager = await numalign.openManager({ ...others, reservedSystemCPUs: '' });
          return Object.defineProperty(manager, 'settings', { value: () => settings });
        },
      },
    ],
    [
      'never uses CPUs of an init container again',
      5,
      withAdmit((manager, pod, options) => {
        const initContainers = pod.initContainers.map((container) => ({
          ...container,
          restartPolicy: 'Always',
        }));
        return manager.admit({ ...pod, initContainers } as never, options);
      }),
    ],
    [
      'gives sidecar containers no CPUs of their own',
      3,
      withAdmit((manager, pod, options) => {
        const initContainers = pod.initContainers.map(({ restartPolicy: _, ...container }) => container);
        return manager.admit({ ...pod, initContainers } as never, options);
      }),
    ],
    [
      'admits every pod to the shared pool',
      10,
      withAdmit((manager, pod, options) => {
        const shared = (container: object) => ({ ...container, limits: {} });
        const { initContainers, containers } = pod;
        return manager.admit(
          {
            ...pod,
            initContainers: initContainers.map(shared),
            containers: (containers as object[]).map(shared),
          } as never,
          options,
        );
      }),
    ],
    [
      'keeps something of a rejected pod',
      10,
      withAdmit(async (manager, pod, options) => {
        try {
          return await manager.admit(pod as never, options);
        } catch (error) {
          const requests = { cpu: '1', memory: 1 };
          const rest = { uid: 'rest', containers: [{ name: 'rest', requests, limits: requests }] };
          if (!isPlaced(manager, { ...pod, uid: 'rest' }))
            await manager.admit(rest as never, options).catch(() => {});
          throw error;
        }
      }),
    ],
    [
      'gives another reason',
      10,
      withAdmit((manager, pod, options) =>
        manager.admit(pod as never, options).catch((error: numalign.NumalignError) => {
          throw new numalign.NumalignError(error.code, error.message, {
            ...error.details,
            reason: 'UnexpectedAdmissionError',
          });
        }),
      ),
    ],
    [
      'gives no reason',
      10,
      withAdmit((manager, pod, options) =>
        manager.admit(pod as never, options).catch((error: Error) => {
          throw new numalign.NumalignError('ERR_INSUFFICIENT_CPUS', error.message);
        }),
      ),
    ],
    [
      'rejects again what is placed',
      10,
      withAdmit(async (manager, pod, options) => {
        if (!isPlaced(manager, pod)) return manager.admit(pod as never, options);
        throw new numalign.NumalignError('ERR_INSUFFICIENT_CPUS', 'no', {
          reason: 'UnexpectedAdmissionError',
        });
      }),
    ],
    [
      'does not remember hints',
      10,
      withManager(() => ({ getAffinity: () => ({ nodes: null, preferred: false }) })),
    ],
    [
      'prefers every hint',
      3,
      withManager((manager) => ({
        getAffinity: (uid: string, name: string) => ({ ...manager.getAffinity(uid, name), preferred: true }),
      })),
    ],
    [
      'writes no shared pool into cpu_manager_state',
      10,
      withManager((manager) => ({
        exportKubelet: () => {
          const { cpuManagerState, ...others } = manager.exportKubelet();
          const state = {
            ...numalign.parseCpuManagerState(cpuManagerState),
            defaultCpuSet: numalign.CpuSet.EMPTY,
          };
          return { ...others, cpuManagerState: numalign.formatCpuManagerState(state) };
        },
      })),
    ],
    ['does not release', 10, withManager(() => ({ release: async () => {} }))],
    ['shares all CPUs always', 10, withManager((manager) => ({ sharedPool: () => manager.topology.cpus }))],
    ['forgets all on a restart', 10, beforeReopening((stateDir) => writePods(stateDir, [], {}))],
    [
      'does not open again',
      10,
      beforeReopening(() => {
        throw new numalign.NumalignError('ERR_STATE_CORRUPT', 'no');
      }),
    ],
  ])('fail with a package that %s', async (_, ofAll, api) => {
    const atLeast = enough(ofAll);
    const { failures } = await replay(ofCpus, api, undefined, atLeast);
    expect(failures.length).toBeGreaterThanOrEqual(atLeast);
  });

  it.each<[string, number, Numalign]>([
    ['books no memory', 10, withOptions((options) => ({ ...options, memoryManagerPolicy: 'None' }))],
    [
      'books memory without a request',
      3,
      withOptions((options) => ({ ...options, memoryManagerPolicy: 'Static' })),
    ],
    ['gives reserved memory away', 10, withOptions(({ reservedMemory: _, ...options }) => options)],
    [
      'says that no memory is reserved',
      10,
      withManager((manager) => ({
        memory() {
          return manager.memory().map((table) => ({ ...table, systemReserved: 0 }));
        },
      })),
    ],
    [
      'says that no memory is booked',
      10,
      withManager((manager) => ({
        memory() {
          return manager.memory().map((table) => ({ ...table, reserved: 0, free: table.allocatable }));
        },
      })),
    ],
    ['says nothing of memory', 10, withPods(without('memory', []))],
    ['says nothing of devices', 5, withPods(without('devices', {}))],
    [
      'takes no note of containers that start',
      2,
      withManager((manager) => ({ pod: (uid: string) => unstarted(manager, uid) })),
    ],
    ['gives no hugepages', 5, withoutResources((resource) => resource.startsWith('hugepages-'))],
    ['gives no devices', 10, withoutResources((resource) => resource.includes('/'))],
    [
      'gives sidecar containers what init containers have',
      2,
      withAdmit((manager, pod, options) => {
        const initContainers = pod.initContainers.map(({ restartPolicy: _, ...container }) => container);
        return manager.admit({ ...pod, initContainers } as never, options);
      }),
    ],
    [
      'never uses memory and devices of an init container again',
      2,
      withAdmit((manager, pod, options) => {
        const initContainers = pod.initContainers.map((container) => ({
          ...container,
          restartPolicy: 'Always',
        }));
        return manager.admit({ ...pod, initContainers } as never, options);
      }),
    ],
    [
      'knows nothing of where devices are',
      5,
      withRegistration((devices) => devices.map((device) => ({ ...device, numaNodes: null }))),
    ],
    [
      'gives devices that are not registered',
      5,
      withRegistration((devices) => devices.map(({ id, ...device }) => ({ ...device, id: `${id}x` }))),
    ],
    [
      'never asks which devices are preferred',
      1,
      withRegistration(
        (devices) => devices,
        () => ({}),
      ),
    ],
    ['knows the devices of its first hours only', 2, onlyOnce()],
    [
      'loses memory at a restart',
      5,
      withStateAtRestart((state) => ({ ...state, pods: state.pods.map(without('memory', [])), memory: {} })),
    ],
    [
      'loses devices at a restart',
      5,
      withStateAtRestart((state) => ({ ...state, pods: state.pods.map(without('devices', {})) })),
    ],
    [
      // Such a state contradicts itself: it is put together again, but not on the same nodes of
      // every group.
      'forgets at a restart on which nodes memory is booked',
      3,
      withStateAtRestart((state) => ({ ...state, memory: {} })),
    ],
  ])('of memory and devices fail with a package that %s', async (_, ofAll, api) => {
    const atLeast = enough(ofAll);
    const { failures } = await replay(ofMemoryAndDevices, api, undefined, atLeast);
    expect(failures.length).toBeGreaterThanOrEqual(atLeast);
  });
});

describe('a scenario', () => {
  // Eight cores of one thread.
  const machine = {
    topology: 'uma-8c',
    distances: [[10]],
    nodes: [{ id: 0, memory: 2 ** 33, hugepages: [], reserved: {} }],
    deviceResources: [],
  };
  const config = {
    cpuPolicy: 'static',
    cpuPolicyOptions: {},
    reservedCpus: '0',
    reservedCpuMilli: 1000,
    topologyPolicy: 'none',
    topologyPolicyOptions: {},
    topologyScope: 'container',
    memoryPolicy: 'None',
  };
  const onAny = { nodes: null, preferred: false };
  const nothing = { memoryBlocks: null, devices: {} };
  const podOf = (uid: string, cpus: number) => {
    const amounts = { cpu: cpus * 1000, memory: 1 };
    return { uid, initContainers: [], containers: [{ name: 'app', requests: amounts, limits: amounts }] };
  };
  const admitted = (cpus: string | null, defaultCpuSet: string) => {
    return {
      admitted: true,
      reason: '',
      containers: { app: { cpus, hint: onAny, ...nothing } },
      defaultCpuSet,
    };
  };
  const rejected = (defaultCpuSet: string, reason = 'UnexpectedAdmissionError') => {
    return { admitted: false, reason, defaultCpuSet };
  };
  const admit = (uid: string, cpus: number, result: Fields) => ({
    op: 'admit',
    podUid: uid,
    pod: podOf(uid, cpus),
    result,
  });
  const on = (op: string, podUid: string, result: Fields) => ({ op, podUid, result });
  const scenarioOf = (steps: readonly Fields[], more: Fields = {}, options: Fields = {}) => {
    return { machine, config: { ...config, ...options }, reservedCpusEffective: '0', steps, ...more };
  };
  const restart = (defaultCpuSet: string) => ({ op: 'restart', result: { defaultCpuSet } });
  const strict = { cpuPolicyOptions: { 'strict-cpu-reservation': 'true' } };

  it('passes with what is recorded and fails with anything else', async () => {
    const steps = [
      admit('a', 2, admitted('1-2', '0,3-7')),
      on('start', 'a', {
        containers: { app: { cpus: '1-2', hint: onAny, ...nothing } },
        defaultCpuSet: '0,3-7',
      }),
      admit('b', 6, rejected('0,3-7')),
      restart('0,3-7'),
      on('readmit', 'a', admitted('1-2', '0,3-7')),
      on('remove', 'a', { defaultCpuSet: '0-7' }),
    ];
    expect(await outcomeOf(scenarioOf(steps))).toBe('passed');
    expect(await outcomeOf(scenarioOf(steps.with(5, on('remove', 'a', { defaultCpuSet: '0-6' }))))).toBe(
      'failed',
    );
    expect(await outcomeOf(scenarioOf(steps, { reservedCpusEffective: '1' }))).toBe('failed');
    expect(await outcomeOf(scenarioOf(steps, { startError: 'no' }))).toBe('failed');
    const { printed } = await run(
      fileOf([{ id: 'x', ...scenarioOf([admit('a', 2, admitted('1,3', '0,2,4-7'))]) }]),
    );
    expect(printed[0]).toBe(
      `cases.jsonl: x: expected at step 0 (admit a) app's CPUs "1,3", the shared pool "0,2,4-7", got app's CPUs "1-2", the shared pool "0,3-7"`,
    );
  });

  it('of a configuration that is refused passes only where upstream refuses it too', async () => {
    const options = { cpuPolicyOptions: { 'align-by-socket': 'true' }, topologyPolicy: 'single-numa-node' };
    const refused = scenarioOf([], { startError: 'incompatible' }, options);
    expect(await outcomeOf(refused)).toBe('passed');
    expect(await outcomeOf({ ...refused, startError: undefined })).toBe('failed');
    const failing = withOptions(() => {
      throw new numalign.NumalignError('ERR_STATE_FOLDER', 'no', { value: '', valid: '' });
    });
    expect(await outcomeOf(refused, failing)).toBe('failed');
  });

  it('without a CPU policy expects all CPUs to be shared', async () => {
    const steps = [admit('a', 2, { ...admitted(null, '') })];
    expect(await outcomeOf(scenarioOf(steps, { reservedCpusEffective: null }, { cpuPolicy: 'none' }))).toBe(
      'passed',
    );
  });

  it('passes a request for nothing where only a limit is recorded', async () => {
    const { uid, containers } = podOf('a', 2);
    const pod = { uid, initContainers: [], containers: [{ ...containers[0]!, requests: {} }] };
    const step = { op: 'admit', podUid: 'a', pod, result: admitted(null, '0-7') };
    expect(await outcomeOf(scenarioOf([step]))).toBe('passed');
  });

  it('counts as A6 where upstream uses the shared pool up, and ends there', async () => {
    const steps = [admit('a', 7, admitted('1-7', '')), on('remove', 'a', { defaultCpuSet: 'anything' })];
    expect(await outcomeOf(scenarioOf(steps, {}, strict))).toBe('A6');
    const empty = withManager(() => ({ sharedPool: () => numalign.CpuSet.EMPTY }));
    expect(await outcomeOf(scenarioOf(steps, {}, strict), empty)).toBe('failed');
    // Nothing but the result of this step can be meant.
    const before = [admit('a', 2, admitted('2-3', '1,4-7')), ...steps];
    expect(await outcomeOf(scenarioOf(before, {}, strict))).toBe('failed');
  });

  it('counts as B where upstream rejects a pod after a restart, and goes on without the pod', async () => {
    const first = [admit('a', 2, admitted('1-2', '0,3-7')), restart('0,3-7')];
    const steps = [...first, on('readmit', 'a', rejected('0-7')), admit('b', 2, admitted('1-2', '0,3-7'))];
    expect(await outcomeOf(scenarioOf(steps))).toBe('B');
    expect(await outcomeOf(scenarioOf(steps.with(3, admit('b', 2, admitted('3-4', '0-2,5-7')))))).toBe(
      'failed',
    );
    const losing = withAdmit(async (manager, pod, options) => {
      if (isPlaced(manager, pod)) await manager.release(pod.uid);
      const others = { ...pod, containers: podOf(pod.uid, 3).containers };
      return manager.admit((isPlaced(manager, pod) ? pod : others) as never, options);
    });
    expect(await outcomeOf(scenarioOf(steps), losing)).toBe('failed');
    const reopened = beforeReopening((stateDir) => writePods(stateDir, [], {}));
    expect(await outcomeOf(scenarioOf(steps), reopened)).toBe('failed');
  });

  it('counts as B where upstream stores another hint after a restart, and goes on with it', async () => {
    const other = { app: { cpus: '1-2', hint: { nodes: [0], preferred: true }, ...nothing } };
    const steps = [
      admit('a', 2, admitted('1-2', '0,3-7')),
      restart('0,3-7'),
      on('readmit', 'a', { ...admitted('1-2', '0,3-7'), containers: other }),
      on('start', 'a', { containers: other, defaultCpuSet: '0,3-7' }),
      restart('0,3-7'),
      on('readmit', 'a', { ...admitted('1-2', '0,3-7'), containers: other }),
      on('remove', 'a', { defaultCpuSet: '0-7' }),
    ];
    expect(await outcomeOf(scenarioOf(steps))).toBe('B');
    expect(await outcomeOf(scenarioOf(steps.with(6, on('remove', 'a', { defaultCpuSet: '0' }))))).toBe(
      'failed',
    );
  });

  it('counts as A1 on an irregular machine and goes on with what upstream did, as long as that makes sense', async () => {
    // Pairs n and n + 12 but for 4 and 20, which are single: on average a core has one CPU.
    const offline = (steps: Fields[]) => {
      const more = { machine: twoNodes({ topology: '2s-6c2t-offline' }), reservedCpusEffective: '1,13' };
      return scenarioOf(steps, more, { reservedCpus: '1,13' });
    };
    const others = '1-2,5-7,9-14,17-19,21-23';
    const following = (cpus: string, rest: string) => [
      admit('a', 3, admitted(cpus, rest)),
      on('start', 'a', {
        containers: { app: { cpus, hint: onAny, ...nothing } },
        defaultCpuSet: rest,
      }),
      on('remove', 'a', { defaultCpuSet: '0-2,4-7,9-14,17-23' }),
    ];
    const steps = following('0,4,20', others);
    expect(await outcomeOf(offline(steps))).toBe('A1');
    expect(await outcomeOf(offline([...steps, on('readmit', 'a', rejected('0-22'))]))).toBe('failed');
    // Averages do not lead to these.
    expect(await outcomeOf(offline(following('0,4,14', '1-2,5-7,9-13,17-23')))).toBe('failed');
    // CPUs 0-15 are pairs, 16-23 are single.
    const irregular = (steps: Fields[]) =>
      scenarioOf(steps, { machine: { ...machine, topology: 'hybrid-8p8e' } });
    const unsafe = admit('a', 2, admitted('0-1', '2-23'));
    expect(await outcomeOf(irregular([unsafe, on('remove', 'a', { defaultCpuSet: 'anything' })]))).toBe('A1');
    expect(await outcomeOf(irregular([admit('a', 2, { panic: 'index out of range' })]))).toBe('A1');
    expect(await outcomeOf(scenarioOf([admit('a', 2, { panic: 'index out of range' })]))).toBe('failed');
  });

  it('counts as A3 where upstream never returns', async () => {
    expect(await outcomeOf(scenarioOf([admit('a', 2, { hang: true })]))).toBe('A3');
    expect(await outcomeOf(scenarioOf([admit('a', 9, { hang: true })]))).toBe('A3');
    const crash = withAdmit(async () => {
      throw new TypeError('no');
    });
    expect(await outcomeOf(scenarioOf([admit('a', 2, { hang: true })]), crash)).toBe('failed');
  });

  it('counts as A4 under full-pcpus-only where a core is free in part', async () => {
    // 2s-3c2t-inter: CPU n and n + 6 are a core.
    const more = {
      machine: {
        ...machine,
        topology: '2s-3c2t-inter',
        distances: [
          [10, 20],
          [20, 10],
        ],
        nodes: [0, 1].map((id) => ({ ...machine.nodes[0], id })),
      },
    };
    const options = { cpuPolicyOptions: { 'full-pcpus-only': 'true' } };
    const given = (cpus: string, rest: string, reserved = '0,2,4') => {
      const hint = { nodes: [0], preferred: true };
      const containers = { app: { cpus, hint, ...nothing } };
      const step = admit('a', 2, { admitted: true, reason: '', containers, defaultCpuSet: rest });
      const config = { ...options, reservedCpus: reserved, topologyPolicy: 'best-effort' };
      return scenarioOf([step], { ...more, reservedCpusEffective: reserved }, config);
    };
    const halves = given('6,8', '0-5,7,9-11');
    expect(await outcomeOf(halves)).toBe('A4');
    // These are not what single CPUs near the hint are.
    expect(await outcomeOf(given('6,10', '0-5,7-9,11'))).toBe('failed');
    const spread = { 'distribute-cpus-across-cores': true };
    const byThread = withOptions((all) => ({ ...all, cpuManagerPolicyOptions: spread }));
    expect(await outcomeOf(given('1,7', '0,2-6,8-11'), byThread)).toBe('failed');
    expect(await outcomeOf(given('2,4', '0-1,3,5-11', '0,6'))).toBe('failed');
  });

  describe('with a pod that is booked as a whole', () => {
    const amounts = (cpus: number) => ({ cpu: cpus * 1000, memory: 1 });
    /** A pod of so many CPUs, of which one container has some for itself and the other shares the rest. */
    const wholeOf = (cpus: number, own: number, result: Fields) => {
      const containers = [
        { name: 'own', requests: amounts(own), limits: amounts(own) },
        { name: 'rest', requests: {}, limits: {} },
      ];
      const podResources = {
        requests: { cpu: cpus * 1000, memory: 2 },
        limits: { cpu: cpus * 1000, memory: 2 },
      };
      const pod = { uid: 'a', initContainers: [], containers, podResources };
      return { op: 'admit', podUid: 'a', pod, result };
    };
    const given = (node: number, podCpus: string, own: string, rest: string, defaultCpuSet: string) => {
      const has = { hint: { nodes: [node], preferred: true }, ...nothing };
      const containers = { own: { cpus: own, ...has }, rest: { cpus: rest, ...has } };
      const cpuIsolation = { own: 'container', rest: 'pod' };
      return {
        admitted: true,
        reason: '',
        containers,
        podCpus,
        podMemoryBlocks: null,
        cpuIsolation,
        defaultCpuSet,
      };
    };
    const replayed = (option: string, reserved: string, step: Fields, api?: Numalign) => {
      const more = { id: 'x136-x', machine: twoNodes({ topology: '2s-3c2t-inter' }) };
      const options = {
        ...{ cpuPolicyOptions: { [option]: 'true' }, reservedCpus: reserved },
        ...{ topologyPolicy: 'best-effort', topologyScope: 'pod' },
        featureGates: { PodLevelResources: true, PodLevelResourceManagers: true },
      };
      return outcomeOf(scenarioOf([step], { ...more, reservedCpusEffective: reserved }, options), api);
    };

    // CPU n and n + 6 are a core; those of even numbers are on node 0.
    it('counts as A4 where the pod has halves of cores, and its containers what is taken of them', async () => {
      const halves = (own: string, rest: string) =>
        replayed('full-pcpus-only', '0,2', wholeOf(4, 2, given(0, '4,6,8,10', own, rest, '0-3,5,7,9,11')));
      expect(await halves('4,10', '6,8')).toBe('A4');
      // Not what is taken of these, or not all of the rest.
      expect(await halves('6,8', '4,10')).toBe('failed');
      expect(await halves('4,10', '6')).toBe('failed');
      // Nor of what is free.
      const elsewhere = given(0, '2,4,8,10', '2,8', '4,10', '0-1,3,5-7,9,11');
      expect(await replayed('full-pcpus-only', '0,6', wholeOf(4, 2, elsewhere))).toBe('passed');
      const other = given(0, '2,4,8,10', '4,10', '2,8', '0-1,3,5-7,9,11');
      expect(await replayed('full-pcpus-only', '0,6', wholeOf(4, 2, other))).toBe('failed');
    });

    it('counts as F1 where a core of the pod is split for a single CPU, and fails with another CPU', async () => {
      const split = (own: string, rest: string, api?: Numalign) => {
        const result = given(0, '2,4,8', own, rest, '0-1,3,5-7,9-11');
        return replayed('prefer-align-cpus-by-uncorecache', '0,6', wholeOf(3, 1, result), api);
      };
      expect(await split('2', '4,8')).toBe('F1');
      expect(await split('4', '2,8')).toBe('passed');
      expect(await split('8', '2,4')).toBe('failed');
      expect(await split('2', '4')).toBe('failed');
    });
  });

  const GI = 2 ** 30;
  const MI = 2 ** 20;

  /** Two nodes of eight CPUs and 4 GiB each. */
  const twoNodes = (more: Fields = {}) => ({
    ...machine,
    topology: '2s-8c1t',
    distances: [
      [10, 20],
      [20, 10],
    ],
    nodes: [0, 1].map((id) => ({ id, memory: 4 * GI, hugepages: [], reserved: {} })),
    ...more,
  });
  const containerOf = (name: string, amounts: Fields) => ({ name, requests: amounts, limits: amounts });
  const admitPod = (uid: string, amounts: Fields, result: Fields) => {
    const pod = { uid, initContainers: [], containers: [containerOf('app', amounts)] };
    return { op: 'admit', podUid: uid, pod, result };
  };
  const block = (numaAffinity: number[], size: number, type = 'memory') => ({ numaAffinity, type, size });

  describe('with memory and devices', () => {
    const gpu = 'example.com/gpu';
    const nodes = [
      { id: 0, memory: 8 * GI, hugepages: [{ sizeKiB: 2048, count: 512 }], reserved: { memory: GI } },
    ];
    const near = (id: string) => ({ id, numaNodes: [0] });
    const resources = [
      { name: gpu, preferredAllocation: true, devices: ['g3', 'g1', 'g10', 'g2'].map(near) },
      { name: 'example.com/nic', preferredAllocation: false, devices: [{ id: 'n0', numaNodes: null }] },
    ];
    const more = { machine: { ...machine, nodes, deviceResources: resources } };
    const pool = '0-7';
    const free = (memory: number, hugepages = GI) => ({
      memoryFree: { 0: { memory: memory, 'hugepages-2Mi': hugepages } },
      defaultCpuSet: pool,
    });
    const gpus = (count: number, ids: string[] | null = null) => ({ [gpu]: { ids, perNuma: { 0: count } } });
    const web = {
      uid: 'web',
      initContainers: [containerOf('init', { cpu: 500, memory: 3 * GI, [gpu]: 1 })],
      containers: [
        containerOf('app', { cpu: 500, memory: GI, 'hugepages-2Mi': 4 * MI, [gpu]: 2, 'example.com/nic': 1 }),
      ],
    };
    const appHas = {
      cpus: null,
      hint: onAny,
      memoryBlocks: [block([0], 4 * MI, 'hugepages-2Mi'), block([0], GI)],
      devices: { ...gpus(2), 'example.com/nic': { ids: ['n0'], perNuma: { none: 1 } } },
    };
    const initHas = { cpus: null, hint: onAny, memoryBlocks: [block([0], 2 * GI)], devices: gpus(1) };
    const ended = { ...initHas, memoryBlocks: null };
    const taken = free(3 * GI, GI - 4 * MI);
    const freed = free(5 * GI, GI - 4 * MI);
    const first = { admitted: true, reason: '', containers: { init: initHas, app: appHas }, ...taken };
    const afterStart = { containers: { init: ended, app: appHas }, ...freed };
    const steps = [
      { op: 'admit', podUid: 'web', pod: web, result: first },
      on('start', 'web', afterStart),
      admitPod('big', { cpu: 500, memory: 6 * GI }, { ...rejected(pool), ...freed }),
      { op: 'restart', result: freed },
      on('readmit', 'web', { admitted: true, reason: '', ...afterStart }),
      on('remove', 'web', free(6 * GI)),
    ];
    const replayed = (list: readonly Fields[], others: Fields = {}) =>
      outcomeOf(scenarioOf(list, { ...more, ...others }, { memoryPolicy: 'Static' }));

    it('passes with what is recorded and fails with anything else', async () => {
      expect(await replayed(steps)).toBe('passed');
      const { init, app } = first.containers;
      const wrong = [
        { app: { ...app, memoryBlocks: [block([0], GI), block([0], 2 * MI, 'hugepages-2Mi')] }, init },
        { app: { ...app, memoryBlocks: null }, init },
        { app: { ...app, devices: gpus(2) }, init },
        {
          app: { ...app, devices: { ...app.devices, [gpu]: { ids: null, perNuma: { 0: 1, none: 1 } } } },
          init,
        },
        { app, init: { ...init, memoryBlocks: [block([0], 3 * GI)] } },
      ];
      for (const containers of wrong) {
        const altered = { ...steps[0]!, result: { ...first, containers } };
        expect(await replayed(steps.with(0, altered))).toBe('failed');
      }
      expect(await replayed(steps.with(1, on('start', 'web', { ...first, admitted: undefined })))).toBe(
        'failed',
      );
      expect(await replayed(steps.with(5, on('remove', 'web', free(5 * GI))))).toBe('failed');
    });

    it('goes on after a diverged step with devices that fit, where the recorded ones are not known', async () => {
      const gone = { ...rejected(pool), ...free(4 * GI, GI - 4 * MI) };
      const other = {
        admitted: true,
        reason: '',
        containers: { app: { cpus: null, hint: onAny, memoryBlocks: [block([0], GI)], devices: gpus(1) } },
      };
      const next = (amounts: Fields, result: Fields) => [
        steps[0]!,
        admitPod('other', { cpu: 500, memory: GI, [gpu]: 1 }, { ...other, ...free(2 * GI, GI - 4 * MI) }),
        { op: 'restart', result: free(2 * GI, GI - 4 * MI) },
        on('readmit', 'web', { ...gone, ...free(5 * GI) }),
        on('start', 'other', { containers: other.containers, ...free(5 * GI) }),
        admitPod('third', amounts, result),
      ];
      const holding = { ...other.containers.app, devices: gpus(3) };
      const three = { ...other, containers: { app: holding }, ...free(4 * GI) };
      expect(await replayed(next({ cpu: 500, memory: GI, [gpu]: 3 }, three))).toBe('B');
      const four = { ...rejected(pool), ...free(5 * GI) };
      expect(await replayed(next({ cpu: 500, memory: GI, [gpu]: 4 }, four))).toBe('B');
      expect(await replayed(next({ cpu: 500, memory: GI, [gpu]: 3 }, four))).toBe('failed');
    });

    it('ends at a diverged step that contradicts itself', async () => {
      const start = [steps[0]!, { op: 'restart', result: taken }];
      const impossible = (containers: Fields, amounts = taken) => [
        ...start,
        on('readmit', 'web', { admitted: true, reason: '', containers, ...amounts }),
        on('remove', 'web', { defaultCpuSet: 'anything' }),
      ];
      const { init, app } = first.containers;
      const reports = (containers: Fields, amounts?: Fields) =>
        replayed(impossible(containers, amounts as typeof taken));
      expect(await reports({ init, app: { ...app, devices: { ...app.devices, ...gpus(5) } } })).toBe('B');
      expect(await reports({ init, app: { ...app, memoryBlocks: [block([0], GI)] } })).toBe('B');
      expect(await reports({ init, app }, free(9 * GI))).toBe('B');
      // This one makes sense, and the replay continues with it.
      expect(await reports({ init, app })).toBe('failed');
    });

    it('counts as F3 where other near devices are recorded, unless a plugin chooses or more are used', async () => {
      const devices = [
        { id: 'd0', numaNodes: [0] },
        { id: 'd1', numaNodes: [0, 1] },
        { id: 'd2', numaNodes: [1] },
        { id: 'd3', numaNodes: null },
      ];
      const replayChoice = (ids: [string[], string[]], preferredAllocation = false) => {
        const deviceResources = [{ name: gpu, preferredAllocation, devices }];
        const hint = { nodes: [0], preferred: true };
        const own = (list: string[]) => {
          const places = list.map(
            (id) => devices.find((each) => each.id === id)!.numaNodes?.join() ?? 'none',
          );
          const perNuma = Object.fromEntries(places.map((place) => [place, 1]));
          return { cpus: null, hint, memoryBlocks: null, devices: { [gpu]: { ids: list, perNuma } } };
        };
        const containers = { init: own(ids[0]), app: own(ids[1]) };
        const asked = { cpu: 500, memory: 1, [gpu]: 1 };
        const pod = {
          ...web,
          initContainers: [containerOf('init', asked)],
          containers: [containerOf('app', asked)],
        };
        const result = { admitted: true, reason: '', containers, defaultCpuSet: '0-15' };
        const options = { topologyPolicy: 'best-effort' };
        const step = { op: 'admit', podUid: 'web', pod, result };
        return outcomeOf(scenarioOf([step], { machine: twoNodes({ deviceResources }) }, options));
      };
      expect(await replayChoice([['d0'], ['d0']])).toBe('passed');
      expect(await replayChoice([['d1'], ['d1']])).toBe('F3');
      expect(await replayChoice([['d1'], ['d1']], true)).toBe('failed');
      expect(await replayChoice([['d1'], ['d0']])).toBe('failed');
      expect(await replayChoice([['d2'], ['d2']])).toBe('failed');
      expect(await replayChoice([['d3'], ['d3']])).toBe('failed');
    });

    it('of random devices passes with as many near the nodes of the hint as in one of the outcomes', async () => {
      const { result: _, ...next } = admitPod('web', { cpu: 500, memory: GI, [gpu]: 2 }, {});
      const outcome = (hint: Fields, perNuma: Fields) => {
        const holding = { cpus: null, hint, memoryBlocks: [block([0], GI)], devices: { [gpu]: { perNuma } } };
        return { admitted: true, reason: '', containers: { app: holding }, ...free(5 * GI) };
      };
      const onNode = { nodes: [0], preferred: true };
      const replayRandom = (...outcomes: Fields[]) => {
        const orderDependentStep = { ...next, outcomes };
        const options = { memoryPolicy: 'Static', topologyPolicy: 'best-effort' };
        return outcomeOf(scenarioOf([], { ...more, orderDependentStep }, options));
      };
      expect(await replayRandom(outcome(onNode, { none: 2 }), outcome(onNode, { 0: 1, '0,1': 1 }))).toBe(
        'passed',
      );
      expect(await replayRandom(outcome(onNode, { none: 2 }), outcome(onNode, { 0: 1, none: 1 }))).toBe(
        'failed',
      );
      expect(await replayRandom(outcome(onNode, { 0: 3 }))).toBe('failed');
      expect(await replayRandom(outcome(onAny, { 0: 2 }))).toBe('failed');
    });
  });

  it('counts as A5 where groups of nodes overlap in what is recorded, now or later', async () => {
    const more = { machine: twoNodes() };
    const options = { memoryPolicy: 'Static', topologyPolicy: 'best-effort' };
    const amounts = { cpu: 500, memory: GI };
    const at = (nodes: number[], size: number, left: [number, number]) => ({
      admitted: true,
      reason: '',
      containers: {
        app: {
          cpus: null,
          hint: { nodes, preferred: true },
          memoryBlocks: [block(nodes, size)],
          devices: {},
        },
      },
      defaultCpuSet: '0-15',
      memoryFree: { 0: { memory: left[0] }, 1: { memory: left[1] } },
    });
    const small = admitPod('small', amounts, at([1], GI, [4 * GI, 3 * GI]));
    const wide = admitPod('wide', { cpu: 500, memory: 5 * GI }, at([0, 1], 5 * GI, [0, 2 * GI]));
    const end = on('remove', 'small', { defaultCpuSet: 'anything' });
    const replayed = (...steps: Fields[]) => outcomeOf(scenarioOf(steps, more, options));
    expect(await replayed(small, wide, end)).toBe('A5');
    const alone = at([0], GI, [3 * GI, 4 * GI]);
    expect(await replayed(admitPod('small', amounts, alone), wide, end)).toBe('A5');
    expect(await replayed(small)).toBe('failed');
    // Nothing overlaps any more.
    const gone = on('remove', 'wide', {
      defaultCpuSet: '0-15',
      memoryFree: { 0: { memory: 4 * GI }, 1: { memory: 4 * GI } },
    });
    expect(
      await replayed(
        admitPod('wide', { cpu: 500, memory: 5 * GI }, at([0, 1], 5 * GI, [0, 3 * GI])),
        gone,
        small,
      ),
    ).toBe('failed');
  });

  it('counts as D1 where no node has the memory, upstream finds out late, and only the reason differs', async () => {
    const message =
      'Allocate failed due to [memorymanager] failed to find NUMA nodes to extend the current topology hint';
    const memoryFree = { 0: { memory: 4 * GI }, 1: { memory: 4 * GI } };
    const late = { ...rejected('0-15'), message, memoryFree };
    const replayed = (result: Fields, topologyPolicy = 'restricted') => {
      const steps = [admitPod('a', { cpu: 500, memory: 9 * GI }, result)];
      return outcomeOf(
        scenarioOf(steps, { machine: twoNodes() }, { memoryPolicy: 'Static', topologyPolicy }),
      );
    };
    expect(await replayed(late)).toBe('D1');
    expect(await replayed(late, 'single-numa-node')).toBe('D1');
    expect(await replayed(late, 'best-effort')).toBe('passed');
    expect(await replayed({ ...late, reason: 'TopologyAffinityError', message: '' })).toBe('passed');
    expect(await replayed({ ...late, reason: 'SMTAlignmentError' })).toBe('failed');
    expect(await replayed({ ...late, message: 'Allocate failed due to not enough cpus available' })).toBe(
      'failed',
    );
    expect(await replayed({ ...late, defaultCpuSet: '0-14' })).toBe('failed');
    expect(await replayed({ ...late, memoryFree: { ...memoryFree, 1: { memory: GI } } })).toBe('failed');
  });

  it('counts as D1 in a later container, and with D9, only where nothing could have had the memory', async () => {
    const nic = 'example.com/nic';
    const resources = [{ name: nic, preferredAllocation: false, devices: [{ id: 'n0', numaNodes: null }] }];
    const machine = twoNodes({ deviceResources: resources });
    const free = (...[first, second]: number[]) => ({
      0: { memory: first! * GI },
      1: { memory: second! * GI },
    });
    const message = `Allocate failed due to requested number of devices unavailable for ${nic}. Requested: 1, Available: 0, which is unexpected`;
    const replayed = (
      asked: number[],
      topologyScope: string,
      memoryFree = free(4, 4),
      before: Fields[] = [],
    ) => {
      const containers = asked.map((memory, i) =>
        containerOf(`app-${i}`, { cpu: 500, memory: memory * GI, [nic]: 1 }),
      );
      const result = { ...rejected('0-15'), message, memoryFree };
      const step = { op: 'admit', podUid: 'a', pod: { uid: 'a', initContainers: [], containers }, result };
      const topologyPolicy = topologyScope === 'pod' ? 'restricted' : 'single-numa-node';
      const options = { memoryPolicy: 'Static', topologyPolicy, topologyScope };
      return outcomeOf(scenarioOf([...before, step], { machine }, options));
    };
    // One of the nodes is the first container's, and the other has not enough for the second.
    expect(await replayed([1, 5], 'container')).toBe('D1');
    expect(await replayed([5], 'container')).toBe('failed');
    expect(await replayed([4, 5], 'pod')).toBe('D1');
    const holding = { cpus: null, hint: { nodes: [0, 1], preferred: true }, devices: {} };
    const group = admitPod(
      'group',
      { cpu: 500, memory: 5 * GI },
      {
        ...{ admitted: true, reason: '', defaultCpuSet: '0-15', memoryFree: free(0, 3) },
        containers: { app: { ...holding, memoryBlocks: [block([0, 1], 5 * GI)] } },
      },
    );
    expect(await replayed([1, 3], 'pod', free(1, 2), [group])).toBe('D1');
    expect(await replayed([1, 3], 'pod', free(1, 1), [group])).toBe('failed');
  });

  it('counts as C where upstream crashes over node ids or over a size of hugepages that one node does not list', async () => {
    const panic = { panic: 'index out of range' };
    const crash = (changed: Fields, options: Fields = {}) =>
      outcomeOf(scenarioOf([admit('a', 1, panic)], { machine: twoNodes(changed) }, options));
    const pages = (...counts: number[]) => {
      const { nodes } = twoNodes();
      const hugepages = (i: number) => (i < counts.length ? [{ sizeKiB: 2048, count: counts[i] }] : []);
      return { nodes: nodes.map((node, i) => ({ ...node, hugepages: hugepages(i) })) };
    };
    expect(await crash(pages(8))).toBe('C');
    expect(await crash(pages(8, 0))).toBe('failed');
    const closest = { topologyPolicyOptions: { 'prefer-closest-numa-nodes': 'true' } };
    const apart = twoNodes().nodes.map((node) => ({ ...node, id: node.id * 8 }));
    const power = { topology: 'power-2s-smt4', nodes: apart };
    expect(await crash(power, closest)).toBe('C');
    expect(await crash(power)).toBe('failed');
    expect(await crash({}, closest)).toBe('failed');
  });

  it('ends before a step with several outcomes, of which one must be ours', async () => {
    const { result: _, ...next } = admit('a', 2, {});
    const right = admitted('1-2', '0,3-7');
    const wrong = admitted('3-4', '0-2,5-7');
    expect(
      await outcomeOf(scenarioOf([], { orderDependentStep: { ...next, outcomes: [wrong, right] } })),
    ).toBe('passed');
    expect(await outcomeOf(scenarioOf([], { orderDependentStep: { ...next, outcomes: [wrong] } }))).toBe(
      'failed',
    );
  });

  it('of an upstream that does not start again passes nowhere, and counts only where it is known why', async () => {
    const steps = [{ op: 'restart', result: { error: 'default cpuset cannot be empty' } }];
    expect(await outcomeOf(scenarioOf(steps))).toBe('failed');
    expect(await outcomeOf(scenarioOf(steps, { machine: { ...machine, topology: 'hybrid-8p8e' } }))).toBe(
      'A1',
    );
  });
});
