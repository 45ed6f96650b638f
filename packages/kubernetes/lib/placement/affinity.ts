// Affinity: near which other containers, and apart from which, a container has its CPUs. Pure.
import { CpuSet } from 'numalign';
import type { Topology } from 'numalign/topology';
import { type FindAnnotation, invalid } from './annotation-text.js';

type Level = 'l3' | 'node';

/** One annotation: SELECTOR [l3|node] [required]. */
export interface AffinityTerm {
  readonly key: 'near' | 'apart';
  /** As it was given. */
  readonly selector: string;
  readonly level: Level;
  readonly isRequired: boolean;
  readonly matches: (other: Neighbour, self: Neighbour) => boolean;
}

/** A container, as selectors see it. */
export interface Neighbour {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Its pod's. */
  readonly labels: Readonly<Record<string, string>>;
}

/** A container with exclusive CPUs. */
export interface PlacedNeighbour extends Neighbour {
  readonly cpus: CpuSet;
  readonly affinity: readonly AffinityTerm[];
}

const VALID =
  'a container, as [[NAMESPACE/]POD/]CONTAINER, or labels of pods, as app=db,tier=2; then perhaps l3 or node, and required';
const PATH = /^[a-z0-9.-]+(\/[a-z0-9.-]+){0,2}$/;
const LABEL = /^[A-Za-z0-9][\w./-]*=[\w.-]*$/;

/**
 * What `near` and `apart` ask for. @throws NodeError ERR_INVALID_ANNOTATION
 */
export function affinityTerms(find: FindAnnotation): readonly AffinityTerm[] {
  return (['near', 'apart'] as const).flatMap((key) => {
    const text = find(key);
    return text === undefined ? [] : [termOf(key, text)];
  });
}

function termOf(key: AffinityTerm['key'], text: string): AffinityTerm {
  const [selector = '', ...words] = text.trim().split(/\s+/);
  const matches = selectorOf(selector);
  const levels = words.filter((word): word is Level => word === 'l3' || word === 'node');
  const isRequired = words.includes('required');
  if (!matches || levels.length > 1 || words.length !== levels.length + Number(isRequired))
    invalid(key, text, VALID);
  return { key, selector, level: levels[0] ?? 'node', isRequired, matches };
}

/** Undefined if the text is no selector. Without a namespace it is the container's own. */
function selectorOf(text: string): AffinityTerm['matches'] | undefined {
  const pairs = text.split(',');
  if (pairs.every((pair) => LABEL.test(pair))) {
    const wanted = pairs.map((pair) => pair.split('=') as [string, string]);
    return (other, self) =>
      other.namespace === self.namespace && wanted.every(([name, value]) => other.labels[name] === value);
  }
  if (!PATH.test(text)) return undefined;
  const [container, pod, namespace] = text.split('/').reverse();
  return (other, self) =>
    other.container === container &&
    other.pod === (pod ?? self.pod) &&
    other.namespace === (namespace ?? self.namespace);
}

/** Where a container may go by its own terms, and by those of others that name it. */
export interface AffinityChoices {
  /** The CPUs to try, one after the other; undefined: all. Empty if the terms leave none. */
  readonly choices: readonly (CpuSet | undefined)[];
  /** The required terms, and which containers they are about, in words. */
  readonly required: readonly string[];
  /** The same of those that are only preferred. */
  readonly preferred: readonly string[];
}

interface Wish {
  readonly term: AffinityTerm;
  /** The L3 groups or NUMA nodes of the containers that match. */
  readonly domains: readonly CpuSet[];
  readonly words: string;
}

const unionOf = (sets: readonly CpuSet[]) => sets.reduce((all, cpus) => all.union(cpus), CpuSet.EMPTY);

/**
 * `selves`: the container, or those of its pod that have their CPUs at once. Apart counts in both
 * directions, as in Kubernetes: they are also kept away from those that are to be apart from them. What is only preferred is given up if there is no room, nearness first.
 */
export function affinityChoices(
  terms: readonly AffinityTerm[],
  selves: readonly Neighbour[],
  others: readonly PlacedNeighbour[],
  topology: Topology,
): AffinityChoices {
  const wishes = wishesOf(terms, selves, others, topology);
  // The first of containers that are to be near each other.
  const isFirst = ({ term, domains }: Wish) =>
    domains.length === 0 && selves.some((self) => term.matches(self, self));
  const near = wishes.find((wish) => wish.term.key === 'near' && !isFirst(wish));
  const aparts = wishes.filter(({ term, domains }) => term.key === 'apart' && domains.length > 0);
  const nearby = near ? nearbyOf(near, topology) : [];
  const bases = near?.term.isRequired ? nearby : [...nearby, topology.cpus];
  const forbidden = unionOf(aparts.filter(isRequired).flatMap(({ domains }) => domains));
  const avoided = unionOf(aparts.flatMap(({ domains }) => domains));
  const sets = [avoided, forbidden].flatMap((without) => bases.map((base) => base.difference(without)));
  const distinct = new Map(sets.filter((set) => !set.isEmpty).map((set) => [`${set}`, set]));
  const inForce = near ? [near, ...aparts] : aparts;
  return {
    choices: [...distinct.values()].map((set) => (set.equals(topology.cpus) ? undefined : set)),
    required: inForce.filter(isRequired).map(({ words }) => words),
    preferred: inForce.filter((wish) => !isRequired(wish)).map(({ words }) => words),
  };
}

const isRequired = ({ term }: Wish): boolean => term.isRequired;

/** The container's own wishes, and those of others to be apart from it. */
function wishesOf(
  terms: readonly AffinityTerm[],
  selves: readonly Neighbour[],
  others: readonly PlacedNeighbour[],
  topology: Topology,
): Wish[] {
  const wishOf = (term: AffinityTerm, matching: readonly PlacedNeighbour[], who = ''): Wish => {
    const domains = domainsOf(topology, term.level, unionOf(matching.map(({ cpus }) => cpus)));
    const names = matching.map((each) => `${nameOf(each)} on CPUs ${each.cpus}`).join(', ');
    return {
      term,
      domains,
      words: `${who}${textOf(term)} (${names || 'no container with CPUs of its own'})`,
    };
  };
  const own = terms.map((term) => {
    const matching = others.filter((other) => selves.some((self) => term.matches(other, self)));
    return wishOf(term, matching);
  });
  const ofOthers = others.flatMap((other) =>
    other.affinity
      .filter((term) => term.key === 'apart' && selves.some((self) => term.matches(self, other)))
      .map((term) => wishOf(term, [other], `${nameOf(other)} is to be `)),
  );
  return [...own, ...ofOthers];
}

function domainsOf(topology: Topology, level: Level, cpus: CpuSet): CpuSet[] {
  const groups = level === 'l3' ? topology.l3Groups : topology.nodes;
  return groups.map((group) => group.cpus).filter((group) => group.intersects(cpus));
}

/** One domain after the other, then all of them; if they are preferred only, the nodes around them. */
function nearbyOf({ term, domains }: Wish, topology: Topology): CpuSet[] {
  const all = unionOf(domains);
  const around = term.level === 'l3' && !term.isRequired ? domainsOf(topology, 'node', all) : [];
  return [...domains, all, ...around];
}

const PLACES: Readonly<Record<Level, string>> = { l3: 'L3 cache', node: 'NUMA node' };

const textOf = ({ key, selector, level }: AffinityTerm): string =>
  key === 'near'
    ? `near ${selector}, at the same ${PLACES[level]}`
    : `apart from ${selector}, at another ${PLACES[level]}`;

const nameOf = ({ namespace, pod, container }: Neighbour): string => `${namespace}/${pod}/${container}`;
