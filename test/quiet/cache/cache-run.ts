// CacheRun: grants that come and go on a fake resctrl, with their settings written and restored by
// the record like every quiet setting.
import type { QuietSetting } from '../../../lib/account/assignments.js';
import { CpuSet } from '../../../lib/machine/cpu-set.js';
import type { Topology } from '../../../lib/machine/topology.js';
import type { QuietDemand } from '../../../lib/quiet/kernel/demands.js';
import type { PartDemand } from '../../../lib/quiet/kernel/setting.js';
import { cache } from '../../../lib/quiet/parts/cache.js';
import type { FakeResctrl } from './fake-resctrl.js';

type Share = { ways: number } | { percent: number };

export function cacheDemand(uid: string, cpus: string, cache: Share): QuietDemand {
  const none = { interrupts: false, workqueues: false, packets: false, idle: null, frequency: false };
  return { uid, cpus: CpuSet.parse(cpus), request: { ...none, cache } };
}

export class CacheRun {
  readonly demands = new Map<string, QuietDemand>();
  /** Survives a stop of the process. By path. */
  readonly record = new Map<string, QuietSetting>();

  constructor(
    readonly files: FakeResctrl,
    readonly topology: Topology,
  ) {}

  get demand(): PartDemand {
    const demands = [...this.demands.values()];
    const cpus = demands.reduce((all, each) => all.union(each.cpus), CpuSet.EMPTY);
    return { topology: this.topology, demands, cpus };
  }

  get settings() {
    return [...cache.settings(this.files, this.demand, [...this.record.keys()])];
  }

  get obstacles() {
    return cache.obstacles(this.files, this.demand);
  }

  /** Uids of grants with disturbed CPUs. */
  get disturbed(): readonly string[] {
    const cpus = this.settings.reduce(
      (all, setting) => all.union(setting.disturbs(setting.read() as string, this.demand)),
      CpuSet.EMPTY,
    );
    return [...this.demands.values()].filter((each) => each.cpus.intersects(cpus)).map(({ uid }) => uid);
  }

  /** Applies the demands to the kernel. @throws the kernel's first refusal, at the end */
  settle(): void {
    const { demand, settings } = this;
    const restores: (() => void)[] = [];
    const refusals: unknown[] = [];
    // Refusals of the kernel have a code; if the process stops, nothing follows.
    const write = (act: () => void) => {
      try {
        act();
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === undefined) throw error;
        refusals.push(error);
      }
    };
    const paths = new Set(settings.map(({ path }) => path));
    for (const path of this.record.keys()) if (!paths.has(path)) this.record.delete(path);
    for (const setting of settings) {
      const { path, identity } = setting;
      const current = setting.read() as string;
      const before = this.record.get(path);
      const isOurs = before?.written.includes(current) ?? false;
      const base = isOurs ? before!.original : current;
      const target = setting.target(base, demand);
      if (target === base) {
        restores.unshift(() => {
          if (isOurs && current !== base) write(() => setting.write(base));
          this.record.delete(path);
        });
        continue;
      }
      const written = [target, ...(before?.written ?? []).filter((value) => value !== target)];
      this.record.set(path, {
        part: 'cache',
        path,
        identity,
        original: base,
        written,
        refusal: null,
        isLeftover: false,
      });
      if (current !== target) write(() => setting.write(target));
    }
    for (const restore of restores) restore();
    if (refusals.length > 0) throw refusals[0];
  }
}
