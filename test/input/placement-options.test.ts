// needs: nothing
// The table of the options of placement, and what follows from each row.
import { describe, expect, it } from 'vitest';
import { freeForStrict } from '../../lib/admission/free-hugepages.js';
import type { Topology } from '../../lib/entries/topology.js';
import { type ManagerOptions, NumalignError } from '../../lib/index.js';
import { optionRows } from '../../lib/input/option-table.js';
import { DEFAULT_PLACEMENT, parsePlacement } from '../../lib/input/placement.js';
import { PLACEMENT_OPTIONS } from '../../lib/input/placement-options.js';
import type { CPU_POLICY_OPTIONS, TOPOLOGY_POLICY_OPTIONS } from '../../lib/input/policy-options.js';
import { parseAdmit } from '../../lib/input/requests/request.js';
import { thrownBy } from '../support/error-of.js';
import { hybridMachine, P8_E12 } from '../support/hybrid.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

/** An option as it is given: within its group, if it has one. */
function given(name: string, value: unknown): object {
  const entries = Object.entries(PLACEMENT_OPTIONS);
  const [group] = entries.find(([, entry]) => 'rows' in entry && name in entry.rows) ?? [];
  return group === undefined ? { [name]: value } : { [group]: { [name]: value } };
}

describe.each(optionRows(PLACEMENT_OPTIONS))('the option %s', (name, { field, check, default: usual }) => {
  const others = Array.isArray(usual) ? 'any' : usual === false ? true : 8;
  const other = check.values?.find((value) => value !== usual) ?? others;

  it('changes its field of a placement, and no other', () => {
    const placement = parsePlacement(given(name, other));
    expect(placement).toEqual({ ...DEFAULT_PLACEMENT, [field]: check(other, name) });
    expect(placement).not.toEqual(DEFAULT_PLACEMENT);
  });

  it('is as before if it is undefined', () => {
    expect(parsePlacement({ [name]: undefined })).toBe(DEFAULT_PLACEMENT);
  });

  it('is refused with another value, by its name', () => {
    const { code, details } = thrownBy(() => parsePlacement(given(name, 'zzz'))) ?? {};
    expect([code, details?.option]).toEqual(['ERR_INVALID_OPTION', name]);
  });
});

type Table = typeof PLACEMENT_OPTIONS;
type Groups = typeof CPU_POLICY_OPTIONS & typeof TOPOLOGY_POLICY_OPTIONS;
type Option =
  | { [Name in keyof Table]: Table[Name] extends { field: string } ? Name : never }[keyof Table]
  | keyof Groups;

/** A request that one value of an option decides differently from the other. */
interface Case {
  readonly values: readonly [unknown, unknown];
  readonly machine: string | Topology;
  /** The CPUs of the containers, and of a grant before them. */
  readonly cpus: readonly number[];
  readonly before?: number;
  readonly memory?: string;
  /** Whether the first container is an init container. */
  readonly isInitFirst?: boolean;
  readonly options?: ManagerOptions;
}

const FLAG_VALUES = [false, true] as const;
const TWO_NODES = 'numa:2 core:4 pu:1';
const SINGLE = { policy: 'single-numa-node' } as const;
// Nodes 2 and 3 are nearest to each other.
const DISTANCES = [
  [10, 40, 80, 80],
  [40, 10, 80, 80],
  [80, 80, 10, 20],
  [80, 80, 20, 10],
];
const FOUR_NODES = await machineOf(DISTANCES.map((distances) => ({ cpus: 4, memory: 8 * GI, distances })));

const WITH_HBM = await machineOf([
  { cpus: 2, memory: 8 * GI },
  { cpus: 0, memory: 8 * GI, tier: 'hbm' },
]);
const HYBRID = await hybridMachine(P8_E12);

const CASES: { readonly [Name in Exclude<Option, 'strictHugepages' | 'ignoreMask'>]: Case } = {
  'full-pcpus-only': { values: FLAG_VALUES, machine: 'core:2 pu:2', cpus: [1] },
  'distribute-cpus-across-numa': { values: FLAG_VALUES, machine: TWO_NODES, cpus: [6] },
  'align-by-socket': { values: FLAG_VALUES, machine: 'package:2 numa:2 core:4 pu:1', before: 3, cpus: [3] },
  'distribute-cpus-across-cores': { values: FLAG_VALUES, machine: 'core:4 pu:2', before: 1, cpus: [2] },
  'prefer-align-cpus-by-uncorecache': {
    ...{ values: FLAG_VALUES, machine: 'l3:2 core:4 pu:1' },
    ...{ before: 1, cpus: [4] },
  },
  'prefer-closest-numa-nodes': { values: FLAG_VALUES, machine: FOUR_NODES, cpus: [6] },
  'max-allowable-numa-nodes': { values: [8, 9], machine: 'numa:9 core:1 pu:1', cpus: [1] },
  'restrict-to-cpu-numa-nodes': {
    ...{ values: FLAG_VALUES, machine: WITH_HBM, options: { memoryTiers: 'any' } },
    ...{ cpus: [1], memory: '12Gi' },
  },
  'numa-allocation-strategy': {
    ...{ values: ['most-allocated', 'least-allocated'], machine: TWO_NODES },
    ...{ before: 1, cpus: [1] },
  },
  cpuManagerPolicy: { values: ['none', 'static'], machine: TWO_NODES, cpus: [1] },
  memoryManagerPolicy: { values: ['None', 'Static'], machine: FOUR_NODES, cpus: [1] },
  policy: { values: ['best-effort', 'single-numa-node'], machine: TWO_NODES, cpus: [5] },
  scope: { values: ['container', 'pod'], machine: TWO_NODES, cpus: [3, 3], options: SINGLE },
  initContainerLookahead: {
    ...{ values: FLAG_VALUES, machine: TWO_NODES, options: SINGLE },
    ...{ before: 1, cpus: [1, 4], isInitFirst: true },
  },
  placement: {
    ...{ values: ['kubelet', 'joint'], machine: TWO_NODES, options: { policy: 'none' } },
    ...{ before: 2, cpus: [3] },
  },
  prefer: {
    ...{ values: ['packed', 'spread'], machine: TWO_NODES, options: { placement: 'joint' } },
    ...{ before: 1, cpus: [1] },
  },
  evenMemory: { values: FLAG_VALUES, machine: FOUR_NODES, cpus: [6] },
  coreKind: { values: ['best', 'any'], machine: HYBRID, cpus: [1] },
  memoryTiers: { values: ['dram', 'hbm,dram'], machine: WITH_HBM, cpus: [1], memory: '1Gi' },
  isolation: {
    ...{ values: ['never', 'require'], machine: TWO_NODES, options: { isolatedCPUs: '4-7' } },
    cpus: [1],
  },
  smt: { values: [undefined, 'hold-sibling'], machine: 'core:2 pu:2', cpus: [1] },
};

/** What is granted, or the code of the error. */
async function outcome(name: string, value: unknown, each: Case): Promise<unknown> {
  const { machine, cpus, before = 0, isInitFirst = false, options, memory } = each;
  const all = cpus.map((cpu, i) => guaranteed(`c${i}`, { cpu, ...(memory && { memory }) }));
  const isOfRequest = Object.fromEntries(optionRows(PLACEMENT_OPTIONS))[name]!.by === 'request';
  const set = given(name, value);
  try {
    const manager = await simulate(machine, { ...options, ...(!isOfRequest && set) });
    if (before > 0) await manager.acquire({ cpu: before });
    const pod = { initContainers: isInitFirst ? all.slice(0, 1) : [], containers: all.slice(+isInitFirst) };
    const { containers } = await manager.admit(pod, isOfRequest ? set : {});
    return containers.map((container) => [String(container.cpus), String(container.held), container.memory]);
  } catch (error) {
    if (error instanceof NumalignError) return error.code;
    throw error;
  }
}

describe('every option decides a request differently', () => {
  it.each(Object.entries(CASES))('%s', async (name, each) => {
    const [one, other] = await Promise.all(each.values.map((value) => outcome(name, value, each)));
    expect(one).not.toEqual(other);
  });

  it('strictHugepages, which needs a machine that is not simulated', () => {
    const pod = { containers: [guaranteed('main', { cpu: 1, 'hugepages-2Mi': '2Mi' })] };
    const machine = { isSimulated: false, numaNodes: [0] } as unknown as Topology;
    const [free, strictly] = FLAG_VALUES.map((strictHugepages) =>
      freeForStrict(parseAdmit(pod, { strictHugepages }, DEFAULT_PLACEMENT), machine),
    );
    expect([free, strictly?.has('hugepages-2Mi')]).toEqual([undefined, true]);
  });
});

it('options that are accessors of a class count', () => {
  class Options {
    get policy() {
      return 'restricted' as const;
    }
    get owner() {
      return 'persistent' as const;
    }
  }
  const pod = { containers: [guaranteed('main', { cpu: 1 })] };
  const { owner, placement } = parseAdmit(pod, new Options(), DEFAULT_PLACEMENT);
  expect([owner, placement.topologyPolicy]).toEqual(['persistent', 'restricted']);
});
