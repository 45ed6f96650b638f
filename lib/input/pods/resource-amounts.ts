// The amounts of resources that a pod requests.
import { inspect } from 'node:util';
import { display, invalidOption } from '../../base/check-options.js';
import { NumalignError } from '../../base/errors.js';
import { type Fields, shapes } from '../../base/shapes.js';
import { binaryBytes, binaryName, hugepageType, pageBytes } from '../values/memory-types.js';
import { option } from '../values/option-values.js';
import { type Amount, milliOf, parseAmount, type Quantity, UNIT, wholeOf } from '../values/quantity.js';

/** Amounts by the name of the resource, such as `{ cpu: 2, memory: '1Gi' }`. */
export type ResourceAmounts = Readonly<Record<string, Quantity>>;

export { MILLI } from '../values/quantity.js';

/** A list of amounts with each resource at most once. */
export type Amounts = readonly ResourceAmount[];

interface ResourceAmount {
  readonly resource: string;
  readonly amount: Amount;
}

export const NO_AMOUNTS: Amounts = [];

/** The amount of a resource in nano-units; 0 if the list does not have it. */
export function nanosOf(amounts: Amounts, resource: string): bigint {
  return amountIn(amounts, resource)?.nanos ?? 0n;
}

/** `length`: the number of items that are filled. */
export function amountIn(amounts: Amounts, resource: string, length = amounts.length): Amount | undefined {
  for (let i = 0; i < length; i++) {
    if (amounts[i]!.resource === resource) return amounts[i]!.amount;
  }
  return undefined;
}
/** Throws for a field whose value is not valid. */
type Refuse = (field: string, value: unknown, valid: string) => never;
// A qualified name of Kubernetes: a name, optionally with a domain in front.
const RESOURCE_NAME =
  /^(?=.{1,317}$)([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/;

/**
 * True if devices can have this name: one with a domain (`example.com/nic`) other than Kubernetes'.
 */
export function isExtendedResource(resource: string): boolean {
  return isOfDevices(resource) && RESOURCE_NAME.test(resource);
}

const isOfDevices = (resource: string) => resource.includes('/') && !resource.includes('kubernetes.io/');

// Most pods request only these two, and the pattern is slow.
const isResourceName = (resource: string) =>
  resource === 'cpu' || resource === 'memory' || RESOURCE_NAME.test(resource);

export function fail(field: string, value: unknown, valid: string): never {
  const text =
    value === undefined ? 'but there is none' : `not ${inspect(value, { depth: 0, maxStringLength: 80 })}`;
  throw new NumalignError('ERR_INVALID_POD', `${field} must be ${valid}, ${text}`, { field, value, valid });
}

/** @throws ERR_INVALID_POD */
export const podShape = shapes(fail);

// True for resources whose request and limit must be equal. The name must be valid.
export const isNeverOvercommitted = (resource: string) =>
  isOfDevices(resource) || resource.startsWith('hugepages-');

export function parseAmounts(value: unknown, field: string, refuse: Refuse = fail): Amounts {
  if (value === undefined || value === null) return NO_AMOUNTS;
  const all = podShape.object(value, field);
  const names = Object.keys(all);
  // Allocated at its final length: growing takes several times as much memory.
  const amounts = new Array<ResourceAmount>(names.length);
  for (let i = 0; i < names.length; i++) {
    const resource = names[i]!;
    const quantity = all[resource];
    if (!isResourceName(resource)) {
      refuse(field, resource, 'keyed by names such as cpu, memory or example.com/gpu');
    }
    const amount = parseAmount(quantity, field, resource);
    const { nanos } = amount;
    let name = resource;
    if (nanos < 0n) refuse(`${field}.${resource}`, quantity, 'zero or more');
    // There is no half device and no half page.
    if (isOfDevices(resource) && nanos % UNIT !== 0n)
      refuse(`${field}.${resource}`, quantity, 'a whole number');
    if (resource.startsWith('hugepages-')) {
      const page =
        pageBytes(resource) ?? refuse(field, resource, 'named with a page size, such as hugepages-2Mi');
      if (Math.log2(page) % 1 !== 0)
        refuse(field, resource, `named ${binaryName(resource)} (no machine has pages of ${page} bytes)`);
      if (nanos % (BigInt(page) * UNIT) !== 0n)
        refuse(
          `${field}.${resource}`,
          quantity,
          `whole pages of ${page} bytes, such as ${wholePages(nanos, page)}`,
        );
      // One name for each page size: hugepages-2048Ki becomes hugepages-2Mi.
      name = hugepageType(page);
      if (amountIn(amounts, name, i)) refuse(field, resource, `given once, as ${name}`);
    }
    amounts[i] = { resource: name, amount };
  }
  return amounts;
}

// The least whole pages with this amount.
function wholePages(nanos: bigint, page: number): string {
  const pageNanos = BigInt(page) * UNIT;
  return binaryBytes(Number((nanos + pageNanos - 1n) / pageNanos) * page);
}

export function inUnits(amounts: Amounts, field: string): ContainerRequest['requests'] {
  const numbers: Record<string, number> = {};
  for (let i = 0; i < amounts.length; i++) {
    const { resource, amount } = amounts[i]!;
    const inUnit = resource === 'cpu' ? milliOf : wholeOf;
    numbers[resource] = inUnit(amount, field, resource);
  }
  return Object.freeze(numbers);
}

/**
 * Amounts by resource, as numbers: `cpu` in millicores, everything else in whole units.
 * @throws ERR_INVALID_QUANTITY, and what `refuse` throws
 */
export function parseRequests(value: unknown, field: string, refuse: Refuse): ContainerRequest['requests'] {
  return inUnits(parseAmounts(value, field, refuse), field);
}

const AMOUNTS = "amounts by resource, such as { 'hugepages-2Mi': '64Mi' }";

// In a pod, where Kubernetes allows it, `500m` is rounded up. A caller means `500M`.
function checkWhole(memory: unknown): void {
  if (parseAmount(memory, 'acquire', 'memory').nanos % UNIT === 0n) return;
  const meant = String(memory).replace(/m$/, 'Mi');
  invalidOption('memory', memory, `whole bytes, such as ${display(meant)}`);
}

/**
 * The resources of `acquire` besides CPUs.
 * @throws ERR_INVALID_OPTION, ERR_INVALID_QUANTITY
 */
export function parseResources(memory: unknown, value: unknown): ContainerRequest['requests'] {
  // Most grants have none.
  if (memory === undefined && value === undefined) return {};
  const resources = option.object(value === undefined ? {} : value, 'resources', AMOUNTS);
  for (const name of ['cpu', 'memory']) {
    const isLeftOut = (all: unknown): all is Fields => !(name in (all as Fields));
    option.that(resources, `resources.${name}`, isLeftOut, `left out: it is the option ${name}`);
  }
  if (memory !== undefined) checkWhole(memory);
  return {
    ...parseRequests(memory === undefined ? {} : { memory }, 'acquire', invalidOption),
    ...parseRequests(resources, 'resources', invalidOption),
  };
}

export interface ContainerRequest {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'app';
  /** `cpu` in millicores, everything else in whole units: bytes, devices. */
  readonly requests: Readonly<Record<string, number>>;
}
