// GrantPart: CPUs of a grant that none but some threads of its process have.
import { type InspectOptions, inspect } from 'node:util';
import { threadShares } from '../account/pod-holdings.js';
import type { GrantRecord } from '../admission/grants/grant-record.js';
import { NumalignError } from '../base/errors.js';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { GrantPinResult, PartPinOptions } from '../threads/pin.js';

/** CPUs of a grant for single threads of its process; {@link Grant.part} makes it. */
export class GrantPart {
  /** The name of the part. */
  readonly name: string;
  readonly #record: GrantRecord;
  readonly #pin: (options: PartPinOptions) => GrantPinResult;

  /** Use {@link Grant.part}. @throws ERR_UNKNOWN_PART */
  constructor(record: GrantRecord, name: string, pin: (options: PartPinOptions) => GrantPinResult) {
    partCpus(record, name);
    this.name = name;
    this.#record = record;
    this.#pin = pin;
  }

  /** The CPUs to run on, as they are now. */
  get cpus(): CpuSet {
    return partCpus(this.#record, this.name);
  }

  /** The NUMA nodes of `cpus`. */
  get numaNodes(): NodeSet {
    return this.#record.host.topology.nodesOf(this.cpus);
  }

  /**
   * Moves the calling thread, or the one with the id `threads`, onto the part's CPUs. It stays
   * there until {@link Grant.unpin} or {@link Grant.release}, also if the process is pinned. It
   * sets the memory policy of the calling thread as {@link Grant.pin} does. Threads that it starts
   * inherit the part: start Workers with {@link Grant.worker}, programs with {@link Grant.spawn}.
   * @throws as {@link Grant.pin}
   */
  pin(options: PartPinOptions = {}): GrantPinResult {
    return this.#pin(options);
  }

  /** All facts as a plain object. */
  toJSON() {
    const { name, cpus, numaNodes } = this;
    return { name, cpus, numaNodes };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `GrantPart ${inspect(this.toJSON(), options)}`;
  }
}

/** @throws ERR_UNKNOWN_PART */
export function partCpus(record: GrantRecord, name: string): CpuSet {
  const [, ...parts] = threadShares(record.look());
  const found = parts.find(({ part }) => part === name);
  if (found) return found.cpus;
  throw unknownPart(
    `grant ${record.pod.uid}`,
    name,
    parts.map(({ part }) => part),
  );
}

/** `valid`: the parts that there are. */
export function unknownPart(grant: string, name: string, valid: readonly string[]): NumalignError {
  const message =
    valid.length === 0
      ? `${grant} has no parts: acquire it with them, as in acquire({ cpu: 2, parts: { io: 1 } })`
      : `${grant} has no part ${inspect(name)}, only ${valid.join(', ')}`;
  return new NumalignError('ERR_UNKNOWN_PART', message, { value: name, valid });
}
