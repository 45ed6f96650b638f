// EmptyPart: a part of a grant that has no CPUs.
import { type InspectOptions, inspect } from 'node:util';
import type { NumalignError } from '../base/errors.js';
import { CpuSet, NodeSet } from '../machine/cpu-set.js';
import { type GrantPinResult, type PartPinOptions, type PinRequest, parsePartPin } from '../threads/pin.js';
import { type GrantPart, unknownPart } from './grant-part.js';

/** No thread was moved, whichever was meant. */
export const NOT_MOVED = Object.freeze({ moved: [], unmovable: [], guaranteed: false } as const);

/** A pin that moves nothing, and returns the code of `reason` if memory was requested. */
export function notPinned({ code }: NumalignError, { mode }: PinRequest): GrantPinResult {
  const memory = { mode: null, nodes: NodeSet.EMPTY, applied: false, reason: code, migrated: null };
  return { ...NOT_MOVED, memory: mode === 'none' ? null : memory };
}

/** As {@link GrantPart}, without CPUs. */
export class EmptyPart implements Pick<GrantPart, keyof GrantPart> {
  readonly name: string;
  readonly cpus = CpuSet.EMPTY;
  readonly numaNodes = NodeSet.EMPTY;
  readonly #reason: NumalignError;

  /** @throws ERR_UNKNOWN_PART */
  constructor(reason: NumalignError, parts: Readonly<Record<string, CpuSet>>, name: string) {
    if (!Object.hasOwn(parts, name)) throw unknownPart('the empty grant', name, Object.keys(parts));
    this.name = name;
    this.#reason = reason;
  }

  pin(options: PartPinOptions = {}): GrantPinResult {
    return notPinned(this.#reason, parsePartPin(options));
  }

  toJSON() {
    const { name, cpus, numaNodes } = this;
    return { name, cpus, numaNodes };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `EmptyPart ${inspect(this.toJSON(), options)}`;
  }
}
