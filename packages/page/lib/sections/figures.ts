// What happened on the CPUs of each grant from one look to the next.
import type { GrantInfo, ManagerView } from 'numalign';
import type { GrantAudit } from 'numalign/diagnostics';
import { type GrantWatch, watchGrants } from 'numalign/tools';
import type { Amount } from '../words/rates.js';

/** Amounts since the last look; null: unknown. */
export interface Figures {
  readonly elapsedMs: number;
  readonly runTimeNs: Amount;
  readonly runDelayNs: Amount;
  readonly involuntarySwitches: Amount;
  readonly interrupts: Amount;
  /** Tasks of other processes on its CPUs. */
  readonly foreignTasks: Amount;
  /** Memory of its processes on other NUMA nodes than its own. */
  readonly elsewhereBytes: Amount;
}

const RATES = ['runTimeNs', 'runDelayNs', 'involuntarySwitches', 'interrupts'] as const;

/** A look within this time after another answers the same. */
const LEAST_MS = 900;
/** After this time without a look, counting begins again. */
const MOST_MS = 60_000;
/** Where memory is costs far more than the rest. */
const MEMORY_MS = 10_000;

export class FigureWatch {
  readonly #manager: ManagerView;
  readonly #memory: boolean;
  #watch: GrantWatch | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;
  #memoryAt = Number.NEGATIVE_INFINITY;
  #audits: ReadonlyMap<string, GrantAudit> = new Map();
  #elsewhere: ReadonlyMap<string, Amount> = new Map();
  #figures: ReadonlyMap<string, Figures> = new Map();

  /** `memory`: also where their memory is. */
  constructor(manager: ManagerView, memory: boolean) {
    this.#manager = manager;
    this.#memory = memory;
  }

  /** By the uid of the grant. @throws what {@link ManagerView.grants} throws */
  look(): ReadonlyMap<string, Figures> {
    const now = performance.now();
    if (now - this.#lastAt < LEAST_MS) return this.#figures;
    if (now - this.#lastAt > MOST_MS) {
      this.#watch = watchGrants(this.#manager);
      this.#audits = new Map();
    }
    const withMemory = this.#memory && now - this.#memoryAt >= MEMORY_MS;
    const grants = this.#watch!.look(withMemory);
    const audits = new Map(grants.flatMap(({ uid, audit }) => (audit ? [[uid, audit] as const] : [])));
    if (withMemory) {
      this.#memoryAt = now;
      this.#elsewhere = new Map(Array.from(audits, ([uid, { offNodeBytes }]) => [uid, offNodeBytes]));
    }
    this.#figures = new Map(Array.from(audits, ([uid, audit]) => [uid, this.#figuresOf(uid, audit)]));
    this.#audits = audits;
    this.#lastAt = now;
    return this.#figures;
  }

  #figuresOf(uid: string, audit: GrantAudit): Figures {
    const before = this.#audits.get(uid);
    const rates = Object.fromEntries(
      RATES.map((name) => [name, before ? difference(audit.totals[name], before.totals[name]) : null]),
    ) as Record<(typeof RATES)[number], Amount>;
    return {
      elapsedMs: before ? audit.elapsedMs - before.elapsedMs : 0,
      ...rates,
      foreignTasks: foreignTasks(audit),
      elsewhereBytes: this.#elsewhere.get(uid) ?? null,
    };
  }
}

const difference = (now: Amount, before: Amount): Amount =>
  now === null || before === null ? null : Math.max(now - before, 0);

function foreignTasks({ cpus }: GrantAudit): Amount {
  const tasks = cpus.map(({ foreign }) => foreign);
  if (tasks.includes(null)) return null;
  return tasks.flatMap((foreign) => foreign ?? []).filter(({ kind }) => kind === 'user').length;
}

/** Of a persistent grant no process is known: only what its CPUs count is. */
export function knownFigures(figures: Figures, { owner }: Pick<GrantInfo, 'owner'>): Figures {
  if (owner.kind !== 'persistent') return figures;
  const unknown = { runTimeNs: null, runDelayNs: null, involuntarySwitches: null };
  return { ...figures, ...unknown, foreignTasks: null, elsewhereBytes: null };
}
