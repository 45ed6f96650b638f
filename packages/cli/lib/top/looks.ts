// Looks: what happens on the CPUs of grants, from one look to the next, without a trace there. It
// reads files only, and this process keeps off the CPUs.
import { type CpuSet, type ManagerView, NumalignError, pin } from 'numalign';
import { affinity, type GrantAudit } from 'numalign/diagnostics';
import { watchGrants } from 'numalign/tools';
import { rowOf } from './figures.js';
import type { TopLook } from './top-text.js';

/** The kernel holds a lock of a process while it says where its memory is. */
const MEMORY_EVERY_MS = 10_000;

export class Looks {
  readonly #view: ManagerView;
  readonly #watch: ReturnType<typeof watchGrants>;
  // The CPUs that the user has given to this process.
  readonly #allowed: CpuSet = affinity();
  #before: ReadonlyMap<string, GrantAudit> = new Map();
  #elsewhere: ReadonlyMap<string, number | null> = new Map();
  #memoryTime = Number.NEGATIVE_INFINITY;

  constructor(view: ManagerView) {
    this.#view = view;
    this.#watch = watchGrants(view);
  }

  /** @throws what {@link ManagerView.status} throws */
  look(): TopLook {
    const status = this.#view.status();
    this.#keepWithin(status.sharedPool);
    // Memory is nowhere else on a machine of one node.
    const hasNodes = this.#view.topology.nodes.length > 1;
    const withMemory = hasNodes && performance.now() - this.#memoryTime >= MEMORY_EVERY_MS;
    const watched = this.#watch.look(withMemory);
    const audits = new Map(watched.flatMap(({ uid, audit }) => (audit ? [[uid, audit] as const] : [])));
    if (withMemory) {
      this.#elsewhere = new Map([...audits].map(([uid, { offNodeBytes }]) => [uid, offNodeBytes]));
      this.#memoryTime = performance.now();
    }
    const rows = status.grants.flatMap((grant) => {
      const now = audits.get(grant.uid);
      const elsewhereBytes = hasNodes ? (this.#elsewhere.get(grant.uid) ?? null) : 0;
      return now ? [rowOf({ grant, now, before: this.#before.get(grant.uid), elsewhereBytes })] : [];
    });
    this.#before = audits;
    return { stateDir: this.#view.stateDir, time: new Date(), status, rows, hasNodes };
  }

  #keepWithin(pool: CpuSet): void {
    const both = this.#allowed.intersection(pool);
    const cpus = both.isEmpty ? pool : both;
    if (cpus.isEmpty || affinity().equals(cpus)) return;
    try {
      pin(cpus);
    } catch (error) {
      // A cpuset without these CPUs: then nothing keeps it off, and the page is still right.
      if (!(error instanceof NumalignError)) throw error;
    }
  }
}
