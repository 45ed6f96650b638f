// Pods of lines that the addon has merged. Most of what they say is the same in many of them: it is
// decoded once, and they share it. native/core/pod_rows.h describes their form. Pure.
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import type { Words } from '../../base/words.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { decodeContainer, decodePod } from './pod-record.js';

/** The pods of {@link MergedLines}. */
export interface PodRows {
  readonly templates: readonly unknown[];
  readonly rows: readonly unknown[];
}

// Without the isolation that follows from its CPUs.
const containerTemplate = (container: unknown) => ({
  ...decodeContainer(container, 'it'),
  isolation: (container as Partial<ContainerAssignment>).isolation,
});

class Reader {
  #next = 0;
  #words = 0;
  // What templates say, by their numbers.
  readonly #templates: unknown[] = [];

  constructor(
    private readonly pods: PodRows,
    private readonly words: Words,
  ) {}

  get isAtEnd(): boolean {
    return this.#next === this.pods.rows.length;
  }

  #value<T>(): T {
    return this.pods.rows[this.#next++] as T;
  }

  #template<T>(decode: (template: unknown, where: string) => T): T {
    const number = this.#value<number>();
    this.#templates[number] ??= decode(this.pods.templates[number], 'it');
    return this.#templates[number] as T;
  }

  #cpus(): CpuSet {
    const begin = this.#words;
    this.#words += this.#value<number>();
    return begin === this.#words ? CpuSet.EMPTY : new CpuSet(this.words.subarray(begin, this.#words));
  }

  #container(): ContainerAssignment {
    const template = this.#template(containerTemplate);
    const [cpus, held] = [this.#cpus(), this.#cpus()];
    return {
      ...template,
      isolation: template.isolation ?? (cpus.isEmpty ? 'host' : 'container'),
      cpus,
      held,
    };
  }

  pod(): PodAssignment {
    const uid = this.#value<string | object>();
    if (typeof uid === 'object') return decodePod(uid, 'it');
    const [name, admittedAt] = [this.#value<string | 0>(), this.#value<string>()];
    const template = this.#template(decodePod);
    const containers = Array.from({ length: this.#value<number>() }, () => this.#container());
    return { ...template, uid, name: name === 0 ? uid : name, containers, admittedAt };
  }
}

/**
 * `words`: of their CPUs.
 * @throws ERR_STATE_CORRUPT, ERR_STATE_VERSION
 */
export function* podsOfRows(pods: PodRows, words: Words): Generator<PodAssignment> {
  const reader = new Reader(pods, words);
  while (!reader.isAtEnd) yield reader.pod();
}
