// Recorded cases with one answer altered, each so that it is surely another one: what a runner must
// notice.
import type { Case } from '../case.js';
import { idsOf, listOf } from '../cpu-list.js';

/** What is altered. */
export const ALTERATIONS = [
  'CPUs',
  "CPU of a pod's set",
  'node',
  'size',
  'preferred',
  'admission',
  'checkpoint',
] as const;
export type Alteration = (typeof ALTERATIONS)[number];

/** One place in a case: makes another case of a copy of it. */
type Place = (copy: any) => void;

const PAGE = 4096;

function otherCpus(list: string): string {
  const ids = [...idsOf(list)];
  const last = ids.at(-1)!;
  // As many as before.
  return listOf([...ids.slice(0, -1), last + 1]);
}

const otherNodes = (nodes: readonly number[]) => (nodes.length > 1 ? nodes.slice(1) : [nodes[0]! + 1]);

// No number gets a zero in front by it.
function otherText(text: string, at = text.search(/\d/)): string {
  const digit = Number(text[at]);
  return `${text.slice(0, at)}${digit === 9 ? 8 : digit + 1}${text.slice(at + 1)}`;
}

// What the kubelet has written, or what it has read.
function placesOfCheckpoint({ text, state, loaded }: any): Place[] {
  const answer = state ? text : loaded ? JSON.stringify(loaded) : '';
  return Array.from(answer.matchAll(/\d/g), ({ index }: RegExpMatchArray) => (copy) => {
    const other = otherText(answer, index);
    if (state) copy.text = other;
    else copy.loaded = JSON.parse(other);
  });
}

function placesOfHolding(what: Alteration, holding: any, find: (copy: any) => any): Place[] {
  const { cpus, hint, memoryBlocks, devices } = holding;
  const places: Place[] = [];
  if (what === 'CPUs' && cpus) places.push((copy) => (find(copy).cpus = otherCpus(cpus)));
  if (what === 'preferred') places.push((copy) => (find(copy).hint.preferred = !hint.preferred));
  if (what === 'node') {
    if (hint.nodes) places.push((copy) => (find(copy).hint.nodes = otherNodes(hint.nodes)));
    for (const [i, block] of (memoryBlocks ?? []).entries()) {
      places.push((copy) => (find(copy).memoryBlocks[i].numaAffinity = otherNodes(block.numaAffinity)));
    }
    for (const [resource, { perNuma }] of Object.entries<any>(devices ?? {})) {
      const [[place, count] = ['', 0], ...others] = Object.entries(perNuma);
      const there = Object.fromEntries([[`${place}9`, count], ...others]);
      places.push((copy) => (find(copy).devices[resource].perNuma = there));
    }
  }
  if (what === 'size') {
    for (const [i, { size }] of (memoryBlocks ?? []).entries()) {
      places.push((copy) => (find(copy).memoryBlocks[i].size = size + PAGE));
    }
  }
  return places;
}

function placesOfStep(what: Alteration, { op, result }: any, find: (copy: any) => any): Place[] {
  const places = Object.entries<any>(result.containers ?? {}).flatMap(([name, holding]) =>
    placesOfHolding(what, holding, (copy) => find(copy).containers[name]),
  );
  if (what === 'admission' && op === 'admit' && result.admitted !== undefined) {
    places.push((copy) => {
      const altered = find(copy);
      altered.admitted = !altered.admitted;
      altered.reason = altered.admitted ? '' : 'TopologyAffinityError';
      if (!altered.admitted) delete altered.containers;
    });
  }
  if (what === "CPU of a pod's set" && result.podCpus) {
    const exclusive = Object.entries<any>(result.containers ?? {}).filter(
      ([name]) => result.cpuIsolation?.[name] === 'container',
    );
    for (const [name, { cpus }] of exclusive) {
      const own = [...idsOf(cpus)];
      const others = [...idsOf(result.podCpus)].filter((cpu) => !own.includes(cpu));
      if (others.length === 0) continue;
      const altered = listOf([...own.slice(0, -1), others.at(-1)!]);
      places.push((copy) => (find(copy).containers[name].cpus = altered));
    }
  }
  if (what === 'size') {
    for (const [node, { memory }] of Object.entries<any>(result.memoryFree ?? {})) {
      places.push((copy) => (find(copy).memoryFree[node].memory = memory + PAGE));
    }
  }
  if (what === 'checkpoint') {
    for (const file of ['cpuCheckpoint', 'memoryCheckpoint']) {
      if (typeof result[file] === 'string') {
        places.push((copy) => (find(copy)[file] = otherText(result[file])));
      }
    }
  }
  return places;
}

function placesOf(what: Alteration, vector: any): Place[] {
  if (vector.steps) {
    return vector.steps.flatMap((step: any, i: number) =>
      placesOfStep(what, step, (copy) => copy.steps[i].result),
    );
  }
  if (what === 'checkpoint') return placesOfCheckpoint(vector);
  if (vector.hints && what === 'node') {
    return vector.hints.map(({ nodes }: any, i: number) => {
      return (copy: any) => (copy.hints[i].nodes = otherNodes(nodes));
    });
  }
  if (vector.hints && what === 'preferred') {
    return vector.hints.map(({ preferred }: any, i: number) => {
      return (copy: any) => (copy.hints[i].preferred = !preferred);
    });
  }
  if (vector.cpus && what === 'CPUs' && !vector.takesUnavailable)
    return [(copy) => (copy.cpus = otherCpus(vector.cpus))];
  if (vector.cpus && what === 'admission') {
    const error = 'not enough cpus available to satisfy request';
    return [(copy) => Object.assign(copy, { cpus: undefined, error })];
  }
  return [];
}

/** So many altered cases at most, from all over the file: of each case one, of few cases more. */
export function mutantsOf(what: Alteration, cases: readonly Case[], count: number): Case[] {
  const all = cases
    .map((vector, i) => ({ vector, first: i * 7, places: placesOf(what, vector) }))
    .filter(({ places }) => places.length > 0);
  const alterations: { readonly vector: Case; readonly alter: Place }[] = [];
  for (
    let round = 0;
    alterations.length < count && all.some(({ places }) => round < places.length);
    round++
  ) {
    for (const { vector, first, places } of all) {
      if (round < places.length)
        alterations.push({ vector, alter: places[(first + round) % places.length]! });
    }
  }
  const step = Math.max(1, alterations.length / count);
  return Array.from({ length: Math.min(count, alterations.length) }, (_, i) => {
    const { vector, alter } = alterations[Math.floor(i * step)]!;
    const copy = structuredClone(vector);
    alter(copy);
    return copy;
  });
}
