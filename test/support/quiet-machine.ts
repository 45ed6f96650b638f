// A machine in memory with settings that quiet grants change: masks and latencies that others
// change, too, that refuse, disappear and come back; and a process that can end at each single
// step.
import type { QuietPart } from '../../lib/account/pod-assignment.js';
import { CpuSet } from '../../lib/index.js';
import type { KernelFiles } from '../../lib/quiet/kernel/kernel-files.js';
import type { Part, PartDemand, Setting } from '../../lib/quiet/kernel/setting.js';

export interface Thing {
  readonly part: 'interrupts' | 'workqueues' | 'idle';
  identity: string;
  value: string;
  /** The last value by other programs, which is in force once no grant needs another. */
  theirs: string;
}

/** Runs an action as a step of a process that may end before or after it. */
export type Step = (name: string, act: () => void) => Promise<void>;

const failure = (code: string) => Object.assign(new Error(code), { code });

/** The target of a setting that others have left at `base`. */
function targetOf({ part }: Pick<Thing, 'part'>, path: string, base: string, demand: PartDemand): string {
  if (part === 'idle') {
    const cpu = Number(path.split('/').at(-1));
    const limits = demand.demands.filter(({ cpus }) => cpus.has(cpu)).map(({ request }) => request.idle!);
    return String(Math.min(Number(base), ...limits.map(({ maxLatency }) => maxLatency)));
  }
  const rest = CpuSet.parse(base).difference(demand.cpus);
  return rest.isEmpty ? base : String(rest);
}

export class QuietMachine {
  readonly things = new Map<string, Thing>();
  /** Values of removed ones, by path. */
  readonly last = new Map<string, string>();
  /** Paths whose writes are refused. */
  readonly refused = new Set<string>();
  /** Of refused writes. */
  refusal = 'EPERM';
  /** Paths whose reads fail. */
  readonly unreadable = new Set<string>();
  /** Folders of which nothing can be seen. */
  readonly hidden = new Set<string>();
  /** Paths and values, as they were written or refused. */
  readonly attempts: string[] = [];
  readonly parts: readonly Part[];
  step: Step = async (_, act) => act();

  constructor(irqs: number, queues: number, cpus: number, value: (path: string) => string) {
    const add = (part: Thing['part'], folder: string, count: number) => {
      for (let i = 0; i < count; i++) this.add(part, `/${folder}/${i}`, 'first', value(`/${folder}/${i}`));
    };
    add('interrupts', 'irq', irqs);
    add('workqueues', 'queue', queues);
    add('idle', 'cpu', cpus);
    this.parts = (['interrupts', 'workqueues', 'idle'] as const).map((name) => this.#partOf(name));
  }

  add(part: Thing['part'], path: string, identity: string, value: string): void {
    this.things.set(path, { part, identity, value, theirs: value });
  }

  remove(path: string): void {
    const thing = this.things.get(path);
    if (thing) this.last.set(path, thing.value);
    this.things.delete(path);
  }

  /** Like another program. */
  set(path: string, value: string): void {
    const thing = this.things.get(path)!;
    thing.value = value;
    thing.theirs = value;
  }

  values(): Record<string, string> {
    return Object.fromEntries([...this.things].map(([path, { value }]) => [path, value]));
  }

  /** The targets of all settings for the demands. */
  expected(demandOf: (part: QuietPart) => PartDemand): Record<string, string> {
    const entries = [...this.things].map(([path, thing]) => [
      path,
      targetOf(thing, path, thing.theirs, demandOf(thing.part)),
    ]);
    return Object.fromEntries(entries);
  }

  #partOf(name: Thing['part']): Part {
    return {
      name,
      settings: () =>
        [...this.things]
          .filter(([path, { part }]) => part === name && !this.#isHidden(path))
          .map(([path, { identity }]) => this.#settingOf(path, identity)),
      hidden: (_, recorded) => recorded.filter(({ path }) => this.#isHidden(path)),
      obstacles: () => [],
    };
  }

  /** True if a process has the rights that it needs. */
  isWritable(path: string): boolean {
    return this.refusal !== 'EACCES' || !this.refused.has(path);
  }

  #isHidden(path: string): boolean {
    return this.hidden.has(path.slice(0, path.lastIndexOf('/')));
  }

  #settingOf(path: string, identity: string): Setting {
    const part = this.things.get(path)!.part;
    return {
      path,
      identity,
      title: path,
      read: () => {
        if (this.unreadable.has(path)) throw failure('EBUSY');
        return this.things.get(path)?.value;
      },
      write: (value) =>
        this.step(`write ${path}`, () => {
          this.attempts.push(`${path} ${value}`);
          if (this.refused.has(path)) throw failure(this.refusal);
          const thing = this.things.get(path);
          if (!thing) throw failure('ENOENT');
          thing.value = value;
        }),
      target: (base, demand) => targetOf({ part }, path, base, demand),
      disturbs: (value, { cpus }) =>
        part === 'idle' ? CpuSet.EMPTY : CpuSet.parse(value).intersection(cpus),
    };
  }
}

/** Of a machine whose settings are not files. */
export const NO_FILES: KernelFiles = {
  read: () => undefined,
  write: () => {},
  list: () => [],
  exists: () => false,
  isWritable: () => true,
  link: () => undefined,
  makeFolder: () => {},
  removeFolder: () => {},
};
