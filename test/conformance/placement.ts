// Who has which CPUs, as recorded or as observed, and the rules that every placement keeps.
import type { MachineJson } from '../../lib/index.js';
import { idsOf } from './cpu-list.js';
import type { RecordedHint } from './hint.js';
import type { Claim } from './pod.js';

/** What one container has. */
export interface Holding {
  /** null: it runs in the shared pool. */
  readonly cpus: string | null;
  readonly hint: RecordedHint;
}

/** By container name. */
export type Holdings = Readonly<Record<string, Holding>>;

/** A node at one moment. */
export interface Placement {
  /** By pod uid. */
  readonly pods: ReadonlyMap<string, Holdings>;
  readonly sharedPool: string;
}

/** What a placement is judged by. */
export interface Rules {
  readonly machine: MachineJson;
  readonly reserved: ReadonlySet<number>;
  /** The reserved CPUs are kept out of the shared pool too. */
  readonly isStrict: boolean;
  /** The pods' containers, in order of admission. */
  readonly claims: ReadonlyMap<string, readonly Claim[]>;
  readonly topologyPolicy: string;
}

export function isSamePods(a: Placement['pods'], b: Placement['pods']): boolean {
  return a.size === b.size && [...a].every(([uid, holdings]) => isSameHoldings(holdings, b.get(uid)));
}

export function isSameHoldings(a: Holdings, b: Holdings | undefined): boolean {
  const text = (holdings: Holdings) =>
    JSON.stringify(
      Object.keys(holdings)
        .sort()
        .map((name) => [name, holdings[name]!.cpus, holdings[name]!.hint.nodes, holdings[name]!.hint.preferred]),
    );
  return b !== undefined && text(a) === text(b);
}

// Of a pod only an init container that has ended leaves its CPUs to a later container.
function flawOfPod(uid: string, holdings: Holdings, { machine, reserved, claims, topologyPolicy }: Rules) {
  const at = machine.columns.indexOf('cpu');
  const online = new Set(machine.cpus.map((row) => row[at]!));
  const podClaims = claims.get(uid) ?? [];
  if (podClaims.length !== Object.keys(holdings).length) return `${uid} has not its own containers`;
  const taken = new Set<number>();
  for (const { name, kind, cpus: count } of podClaims) {
    const holding = holdings[name];
    const cpus = idsOf(holding?.cpus ?? '');
    if (!holding || cpus.size !== count) return `${uid} ${name} has ${cpus.size} CPUs instead of ${count}`;
    for (const cpu of cpus) {
      if (!online.has(cpu)) return `${uid} ${name} has CPU ${cpu}, which the machine has not`;
      if (reserved.has(cpu)) return `${uid} ${name} has the reserved CPU ${cpu}`;
      if (taken.has(cpu)) return `${uid} ${name} has CPU ${cpu} of another container`;
      if (kind !== 'init') taken.add(cpu);
    }
    const mustBePreferred = topologyPolicy === 'restricted' || topologyPolicy === 'single-numa-node';
    if (mustBePreferred && !holding.hint.preferred) return `${uid} ${name} has a hint that ${topologyPolicy} rejects`;
  }
  return undefined;
}

/** Which rule a placement breaks, if any. */
export function flawOf({ pods, sharedPool }: Placement, rules: Rules): string | undefined {
  const owners = new Map<number, string>();
  for (const [uid, holdings] of pods) {
    const flaw = flawOfPod(uid, holdings, rules);
    if (flaw) return flaw;
    const own = new Set(Object.values(holdings).flatMap(({ cpus }) => [...idsOf(cpus ?? '')]));
    for (const cpu of own) {
      if (owners.has(cpu)) return `CPU ${cpu} is both ${owners.get(cpu)}'s and ${uid}'s`;
      owners.set(cpu, uid);
    }
  }
  const at = rules.machine.columns.indexOf('cpu');
  const shared = rules.machine.cpus
    .map((row) => row[at]!)
    .filter((cpu) => !owners.has(cpu) && !(rules.isStrict && rules.reserved.has(cpu)));
  const pool = idsOf(sharedPool);
  if (pool.size === 0) return 'the shared pool is empty';
  const isRest = pool.size === shared.length && shared.every((cpu) => pool.has(cpu));
  return isRest ? undefined : `the shared pool ${sharedPool} is not what is left`;
}
