// Pods of lines that the addon has merged. Most of what they say is the same in many of them: it is
// decoded once, and they share it. native/core/pod_rows.h describes their form. Pure.
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import type { Shape } from '../../base/shapes.js';
import type { Words } from '../../base/words.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { decodeContainer, decodePod } from './pod-record.js';

/** The pods of {@link MergedLines}. */
export interface PodRows {
  readonly templates: readonly unknown[];
  readonly rows: readonly unknown[];
}

// Without the isolation that follows from its CPUs.
const containerTemplate = (container: unknown, where: string) => ({
  ...decodeContainer(container, where),
  isolation: (container as Partial<ContainerAssignment>).isolation,
});

/**
 * `words`: of their CPUs.
 * @throws ERR_STATE_CORRUPT, ERR_STATE_VERSION
 */
export function* podsOfRows({ templates, rows }: PodRows, words: Words): Generator<PodAssignment> {
  let [next, word] = [0, 0];
  const value = <T>() => rows[next++] as T;
  const decoded: unknown[] = [];
  const template = <T>(decode: Shape<T>) => {
    const number = value<number>();
    decoded[number] ??= decode(templates[number], 'it');
    return decoded[number] as T;
  };
  const set = () => {
    const begin = word;
    word += value<number>();
    return begin === word ? CpuSet.EMPTY : new CpuSet(words.subarray(begin, word));
  };
  const container = (): ContainerAssignment => {
    const known = template(containerTemplate);
    const [cpus, held] = [set(), set()];
    return { ...known, isolation: known.isolation ?? (cpus.isEmpty ? 'host' : 'container'), cpus, held };
  };
  while (next < rows.length) {
    const uid = value<string | object>();
    if (typeof uid === 'object') {
      yield decodePod(uid, 'it');
      continue;
    }
    const [name, admittedAt] = [value<string | 0>(), value<string>()];
    const pod = template(decodePod);
    const containers = Array.from({ length: value<number>() }, container);
    yield { ...pod, uid, name: name === 0 ? uid : name, containers, admittedAt };
  }
}
