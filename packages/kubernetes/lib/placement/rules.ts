// Rules: what an operator has decided for some containers. The first rule that matches a container
// counts. Pure.
import { REQUEST_OPTIONS } from '@numalign/claims';
import { CpuSet } from 'numalign';
import {
  checkAcquireOptions,
  checkOptions,
  invalidOption,
  type RequestPlacementOptions,
} from 'numalign/tools';

const QOS_CLASSES: readonly unknown[] = ['Guaranteed', 'Burstable', 'BestEffort'];

/** What shared containers of a rule are bound to, each pod to one of them. */
export const POOLS = ['numa-node', 'l3-group'] as const;
export type Pool = (typeof POOLS)[number];

/** What a rule is matched by. */
export interface Subject {
  readonly namespace: string;
  readonly container: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly qosClass: string;
}

type Match = (subject: Subject) => boolean;

export interface Rule {
  readonly name: string;
  /** What it needs of a container, by the name of the condition; all must hold. */
  readonly match: Readonly<Record<string, Match>>;
  /**
   * How many exclusive CPUs; `true`: as many as its limit or request, rounded up; `false`: none;
   * undefined: as without a rule.
   */
  readonly exclusive: boolean | number | undefined;
  /** The only CPUs for it; undefined: all. */
  readonly cpus: CpuSet | undefined;
  readonly pool: Pool | undefined;
  readonly placement: RequestPlacementOptions;
  /** Whether annotations of pods take precedence. */
  readonly annotations: boolean;
}

/** A pattern: `*` stands for any characters. */
function patternOf(text: string): RegExp {
  const parts = text.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

function anyOf(value: unknown, name: string): (text: string) => boolean {
  const list = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(list) || list.length === 0 || list.some((each) => typeof each !== 'string'))
    return invalidOption(name, value, "a text or a list of texts, such as [web, 'ran-*']");
  const patterns = list.map(patternOf);
  return (text) => patterns.some((pattern) => pattern.test(text));
}

function pairs(value: unknown, name: string): (found: Readonly<Record<string, string>>) => boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return invalidOption(name, value, "values by key, such as { app: upf, tier: '*' }");
  const tests = Object.entries(value).map(([key, each]) => [key, anyOf(each, `${name}.${key}`)] as const);
  return (found) => tests.every(([key, test]) => found[key] !== undefined && test(found[key]));
}

/** The conditions by name. */
const CONDITIONS: Readonly<Record<string, (value: unknown, name: string) => Match>> = {
  namespaces: (value, name) => {
    const test = anyOf(value, name);
    return ({ namespace }) => test(namespace);
  },
  containers: (value, name) => {
    const test = anyOf(value, name);
    return ({ container }) => test(container);
  },
  labels: (value, name) => {
    const test = pairs(value, name);
    return ({ labels }) => test(labels);
  },
  annotations: (value, name) => {
    const test = pairs(value, name);
    return ({ annotations }) => test(annotations);
  },
  qosClasses: (value, name) => {
    const test = anyOf(value, name);
    const wrong = [value].flat().find((each) => !QOS_CLASSES.includes(each));
    if (wrong !== undefined) invalidOption(name, wrong, `one of ${QOS_CLASSES.join(', ')}`);
    return ({ qosClass }) => test(qosClass);
  },
};

// A runtime does not tell a plugin the priority class.
const UNKNOWN_TO_RUNTIMES = /^priorit/i;
const elsewhere = (key: string) =>
  UNKNOWN_TO_RUNTIMES.test(key)
    ? 'labels or annotations? A runtime does not know the priority class: give such pods a label'
    : undefined;

function matchOf(value: unknown, name: string): Rule['match'] {
  const fields = checkOptions(value ?? {}, Object.keys(CONDITIONS), name, elsewhere);
  return Object.fromEntries(
    Object.entries(fields).map(([key, each]) => [key, CONDITIONS[key]!(each, `${name}.${key}`)]),
  );
}

const FIELDS = ['name', 'match', 'exclusive', 'cpus', 'pool', 'annotations', ...REQUEST_OPTIONS];

const isExclusive = (value: unknown): value is boolean | number | undefined =>
  ['boolean', 'undefined'].includes(typeof value) ||
  (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= CpuSet.MAX_ID);

function cpusOf(value: unknown, name: string): CpuSet | undefined {
  if (value === undefined) return undefined;
  const cpus =
    typeof value === 'string' || typeof value === 'number' ? CpuSet.parse(String(value)) : undefined;
  return cpus && !cpus.isEmpty ? cpus : invalidOption(name, value, 'a list of CPUs such as 4-7,12');
}

function ruleOf(value: unknown, where: string): Rule {
  const fields = checkOptions(value, FIELDS, where);
  const { name = where, exclusive, pool, annotations = true } = fields;
  if (typeof name !== 'string') invalidOption(`${where}.name`, name, 'a text');
  if (!isExclusive(exclusive))
    invalidOption(`${where}.exclusive`, exclusive, 'true, false, or a number of CPUs');
  if (pool !== undefined && !POOLS.includes(pool as Pool))
    invalidOption(`${where}.pool`, pool, `one of ${POOLS.join(', ')}`);
  if (typeof annotations !== 'boolean') invalidOption(`${where}.annotations`, annotations, 'true or false');
  const options = REQUEST_OPTIONS.filter((option) => fields[option] !== undefined);
  const placement = Object.fromEntries(options.map((option) => [option, fields[option]]));
  checkAcquireOptions({ cpu: 1, ...placement });
  return {
    name: name as string,
    match: matchOf(fields.match, `${where}.match`),
    exclusive: exclusive as Rule['exclusive'],
    cpus: cpusOf(fields.cpus, `${where}.cpus`),
    pool: pool as Pool | undefined,
    placement,
    annotations: annotations as boolean,
  };
}

/** @throws NumalignError ERR_INVALID_OPTION, which names the rule and the field */
export function parseRules(value: unknown, name: string): readonly Rule[] {
  if (!Array.isArray(value)) return invalidOption(name, value, 'a list of rules');
  return value.map((each, i) => ruleOf(each, `${name}[${i}]`));
}

/** The conditions of a rule that a container does not meet; empty: the rule matches. */
export const unmet = ({ match }: Rule, subject: Subject): string[] =>
  Object.entries(match).flatMap(([condition, test]) => (test(subject) ? [] : [condition]));

/** The first rule that matches. */
export const matching = (rules: readonly Rule[], subject: Subject): Rule | undefined =>
  rules.find((rule) => unmet(rule, subject).length === 0);
