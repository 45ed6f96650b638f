// Annotations: what annotations ask of numalign, for all containers of a pod or for one. Pure.
import type { NumalignError } from 'numalign';
import { nearestOf, PLACEMENT_OPTIONS, type PlacementOptions } from 'numalign/tools';
import { NodeError } from '../base/errors.js';

/** Annotations by name; a container's own take precedence over its pod's. */
export interface Annotated {
  readonly annotations: Readonly<Record<string, string>>;
}

/** Requests beyond the resources that the runtime reports; undefined if not set. */
export interface Wishes {
  /** Whole exclusive CPUs; 0: none, whatever else the container has. */
  readonly cpu: number | undefined;
  /** A Kubernetes quantity. */
  readonly memory: string | undefined;
  /** Numbers of devices by resource. */
  readonly devices: Readonly<Record<string, number>>;
  readonly smt: 'hold-sibling' | undefined;
  readonly coreKind: PlacementOptions['coreKind'];
  readonly memoryTiers: PlacementOptions['memoryTiers'];
  /** Whether devices are passed on by their CDI names. */
  readonly cdi: boolean;
}

export const ANNOTATION_PREFIX = 'numalign.io/';
/**
 * Set on containers that numalign has placed: the CPUs that the creator has chosen; empty: none.
 */
export const CHOICE_ANNOTATION = `${ANNOTATION_PREFIX}choice`;

/** What can be asked for: `numalign.io/KEY`, of a pod also `numalign.io/KEY.CONTAINER`. */
export const ANNOTATION_KEYS = ['cpu', 'memory', 'resources', 'cdi', 'memory-tiers', 'core-kind', 'smt'];
// Those that are not asked of this program.
const OTHERS: ReadonlySet<string> = new Set(['choice', 'movable']);

const CORE_KINDS = PLACEMENT_OPTIONS.coreKind.check.values!;

const QUANTITY = /^[0-9]+(\.[0-9]+)?([EPTGMk]i?|Ki|m)?$/;
const RESOURCE = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?\/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const COUNT = /^[0-9]{1,5}$/;

function invalid(key: string, value: string, valid: string): never {
  const name = `${ANNOTATION_PREFIX}${key}`;
  throw new NodeError(
    'ERR_INVALID_ANNOTATION',
    `annotation ${name} is ${JSON.stringify(value)}, not ${valid}`,
    {
      value,
      valid,
    },
  );
}

/**
 * Refuses annotations with the prefix that mean nothing: most are typing errors.
 * @throws NodeError ERR_INVALID_ANNOTATION
 */
export function checkAnnotationKeys(...all: readonly Annotated[]): void {
  for (const name of all.flatMap(({ annotations }) => Object.keys(annotations))) {
    if (!name.startsWith(ANNOTATION_PREFIX)) continue;
    const [key = ''] = name.slice(ANNOTATION_PREFIX.length).split('.');
    if (ANNOTATION_KEYS.includes(key) || OTHERS.has(key)) continue;
    const nearest = nearestOf(key.toLowerCase(), ANNOTATION_KEYS);
    const guess = nearest === undefined ? '' : `; did you mean ${ANNOTATION_PREFIX}${nearest}?`;
    const valid = ANNOTATION_KEYS.map((each) => `${ANNOTATION_PREFIX}${each}`);
    throw new NodeError('ERR_INVALID_ANNOTATION', `there is no annotation ${name}${guess}`, {
      value: name,
      valid,
    });
  }
}

/**
 * Refuses annotations for a container whose rule does not allow any.
 * @throws NodeError ERR_INVALID_ANNOTATION
 */
export function refuseAnnotations(
  rule: string,
  pod: Annotated,
  container: Annotated & { readonly name: string },
): void {
  const names = ANNOTATION_KEYS.map((key) => `${ANNOTATION_PREFIX}${key}`);
  const found =
    names.find((name) => name in container.annotations || name in pod.annotations) ??
    names.map((name) => `${name}.${container.name}`).find((name) => name in pod.annotations);
  if (found === undefined) return;
  throw new NodeError('ERR_INVALID_ANNOTATION', `the rule ${rule} of this node allows no ${found}`, {
    value: found,
    valid: 'no annotations of numalign',
  });
}

/** None. */
export const NO_WISHES: Wishes = {
  cpu: undefined,
  memory: undefined,
  devices: {},
  smt: undefined,
  coreKind: undefined,
  memoryTiers: undefined,
  cdi: false,
};

/**
 * The annotations of a container, as its runtime reports them. The first of these counts:
 * `numalign.io/KEY` of the container, `numalign.io/KEY.CONTAINER` and `numalign.io/KEY` of its pod.
 * @throws NodeError ERR_INVALID_ANNOTATION
 */
export function wishesOf(pod: Annotated, container: Annotated & { readonly name: string }): Wishes {
  const find = (key: string): string | undefined =>
    container.annotations[`${ANNOTATION_PREFIX}${key}`] ??
    pod.annotations[`${ANNOTATION_PREFIX}${key}.${container.name}`] ??
    pod.annotations[`${ANNOTATION_PREFIX}${key}`];
  const [cpu, memory, resources, smt, cdi] = ['cpu', 'memory', 'resources', 'smt', 'cdi'].map(find);
  const coreKind = find('core-kind');
  if (cpu !== undefined && !COUNT.test(cpu)) invalid('cpu', cpu, 'a whole number of CPUs, 0 for none');
  if (memory !== undefined && !QUANTITY.test(memory))
    invalid('memory', memory, 'a quantity of Kubernetes, such as 2Gi');
  if (smt !== undefined && smt !== 'hold-sibling') invalid('smt', smt, 'hold-sibling');
  if (coreKind !== undefined && !CORE_KINDS.includes(coreKind))
    invalid('core-kind', coreKind, `one of ${CORE_KINDS.join(', ')}`);
  if (cdi !== undefined && cdi !== 'true' && cdi !== 'false') invalid('cdi', cdi, 'true or false');
  return {
    cpu: cpu === undefined ? undefined : Number(cpu),
    memory,
    devices: devicesOf(resources),
    smt,
    coreKind: coreKind as Wishes['coreKind'],
    memoryTiers: tiersOf(find('memory-tiers')),
    cdi: cdi === 'true',
  };
}

function tiersOf(text: string | undefined): Wishes['memoryTiers'] {
  if (text === undefined) return undefined;
  try {
    return PLACEMENT_OPTIONS.memoryTiers.check(text, 'memoryTiers');
  } catch (error) {
    return invalid('memory-tiers', text, (error as NumalignError).details.valid as string);
  }
}

function devicesOf(text: string | undefined): Readonly<Record<string, number>> {
  if (text === undefined) return {};
  const valid = 'a list such as example.com/nic=1,example.com/gpu=2';
  const pairs = text.split(',').map((item) => item.trim().split('='));
  const devices = new Map<string, number>();
  for (const [resource = '', count = '', ...rest] of pairs) {
    const isRight = RESOURCE.test(resource) && COUNT.test(count) && rest.length === 0;
    if (!isRight || devices.has(resource)) invalid('resources', text, valid);
    devices.set(resource, Number(count));
  }
  return Object.fromEntries(devices);
}
