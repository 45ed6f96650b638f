// Objects: ResourceClaims, ResourceClaimTemplates and DeviceClasses of manifests, checked as far as
// an allocation depends on them.
import { NumalignError } from 'numalign';
import { display, parseQuantity } from 'numalign/tools';
import type { Expression } from '../cel/expression.js';
import { parseCel } from '../cel/parse.js';
import { beyondSubset } from '../cel/subset.js';
import { CelError } from '../cel/tokens.js';
import { DEVICE_UNITS, DRIVER } from '../devices/devices.js';
import type { ClaimConfig } from './parameters.js';

/** The kinds of manifests that are read here. */
export const CLAIM_KINDS = ['ResourceClaim', 'ResourceClaimTemplate', 'DeviceClass'] as const;

export interface Selector {
  readonly text: string;
  readonly expression: Expression;
}

/** The API's limit for the devices of a claim. */
export const MOST_DEVICES = 32;

/** A request, or one of its alternatives. */
export interface DeviceRequest {
  /** Of an alternative `REQUEST/ALTERNATIVE`. */
  readonly name: string;
  readonly className: string;
  readonly selectors: readonly Selector[];
  /** `all`: all devices that match, of which each must be free. */
  readonly count: number | 'all';
  /** Whether it asks for devices that others have. */
  readonly isAdmin: boolean;
  /** In billionths, by capacity. */
  readonly amounts: ReadonlyMap<string, bigint>;
  /** What of it is not planned. */
  readonly beyond: readonly string[];
}

export interface Constraint {
  /** Empty: all of the claim. */
  readonly requests: readonly string[];
  readonly attribute: string;
  /** Whether values must differ, instead of being the same. */
  readonly isDistinct: boolean;
}

export interface Claim {
  /** Each with its alternatives, of which the first that fits is taken. */
  readonly requests: readonly { readonly name: string; readonly alternatives: readonly DeviceRequest[] }[];
  readonly constraints: readonly Constraint[];
  /** The parameters for numalign. */
  readonly configs: readonly ClaimConfig[];
}

export interface DeviceClass {
  readonly selectors: readonly Selector[];
  readonly beyond: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

function invalid(field: string, value: unknown, valid: string): never {
  const text = value === undefined ? 'but there is none' : `not ${display(value)}`;
  throw new NumalignError('ERR_INVALID_ARGUMENT', `${field} must be ${valid}, ${text}`, {
    value,
    valid,
  });
}

function object(value: unknown, field: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  return invalid(field, value, 'an object');
}

const list = (value: unknown, field: string): readonly unknown[] =>
  value === undefined || value === null ? [] : Array.isArray(value) ? value : invalid(field, value, 'a list');

const text = (value: unknown, field: string): string =>
  typeof value === 'string' && value !== '' ? value : invalid(field, value, 'a text');

const texts = (value: unknown, field: string) =>
  list(value, field).map((each, i) => text(each, `${field}[${i}]`));

/** The spec of a claim, or of a template. @throws ERR_INVALID_ARGUMENT, which names the field */
export function claimOf(manifest: unknown): Claim {
  const { kind, spec } = object(manifest, 'the manifest');
  const isTemplate = kind === 'ResourceClaimTemplate';
  const at = isTemplate ? 'spec.spec.devices' : 'spec.devices';
  const own = object(spec, 'spec');
  const devices = object((isTemplate ? object(own.spec, 'spec.spec') : own).devices, at);
  const requests = list(devices.requests, `${at}.requests`).map((each, i) => {
    return requestOf(object(each, `${at}.requests[${i}]`), `${at}.requests[${i}]`);
  });
  const constraints = list(devices.constraints, `${at}.constraints`).map((each, i) =>
    constraintOf(object(each, `${at}.constraints[${i}]`), `${at}.constraints[${i}]`),
  );
  const configs = list(devices.config, `${at}.config`).flatMap((each, i) => {
    const { requests: names, opaque } = object(each, `${at}.config[${i}]`);
    const { driver, parameters: value } = object(opaque, `${at}.config[${i}].opaque`);
    return driver === DRIVER ? [{ requests: texts(names, `${at}.config[${i}].requests`), value }] : [];
  });
  checkNames(requests, constraints, at);
  return { requests, constraints, configs };
}

function checkNames(requests: Claim['requests'], constraints: readonly Constraint[], at: string): void {
  const names = requests.flatMap(({ name, alternatives }) => [
    name,
    ...alternatives.map((each) => each.name),
  ]);
  const twice = requests.find(({ name }, i) => requests.findIndex((each) => each.name === name) < i);
  if (twice) invalid(`${at}.requests`, twice.name, 'each of another name');
  for (const [i, constraint] of constraints.entries())
    for (const name of constraint.requests)
      if (!names.includes(name))
        invalid(`${at}.constraints[${i}].requests`, name, `one of ${[...new Set(names)].join(', ')}`);
}

// v1beta1 has the fields of `exactly` in the request itself.
function requestOf(fields: Fields, field: string): Claim['requests'][number] {
  const name = text(fields.name, `${field}.name`);
  const { exactly, firstAvailable } = fields;
  if (firstAvailable !== undefined) {
    const alternatives = list(firstAvailable, `${field}.firstAvailable`).map((each, i) => {
      const at = `${field}.firstAvailable[${i}]`;
      const own = object(each, at);
      return deviceRequest(own, `${name}/${text(own.name, `${at}.name`)}`, at);
    });
    return { name, alternatives };
  }
  const [own, at] =
    exactly === undefined ? [fields, field] : [object(exactly, `${field}.exactly`), `${field}.exactly`];
  return { name, alternatives: [deviceRequest(own, name, at)] };
}

function deviceRequest(fields: Fields, name: string, field: string): DeviceRequest {
  const { capacity, adminAccess } = fields;
  const requests = object(
    object(capacity ?? {}, `${field}.capacity`).requests ?? {},
    `${field}.capacity.requests`,
  );
  const { selectors, beyond } = selectorsOf(fields.selectors, `${field}.selectors`);
  return {
    ...{ name, selectors, beyond, count: countOf(fields, field), isAdmin: adminAccess === true },
    className: text(fields.deviceClassName, `${field}.deviceClassName`),
    amounts: new Map(
      Object.entries(requests).map(([key, value]) => [
        key,
        parseQuantity(value, `${field}.capacity.requests.${key}`),
      ]),
    ),
  };
}

function countOf({ allocationMode = 'ExactCount', count }: Fields, field: string): DeviceRequest['count'] {
  if (allocationMode === 'All')
    return count === undefined ? 'all' : invalid(`${field}.count`, count, 'left out with allocationMode All');
  if (allocationMode !== 'ExactCount')
    invalid(`${field}.allocationMode`, allocationMode, 'ExactCount or All');
  if (count === undefined) return 1;
  const isCount = Number.isSafeInteger(count) && (count as number) >= 1 && (count as number) <= MOST_DEVICES;
  return isCount
    ? (count as number)
    : invalid(`${field}.count`, count, `a whole number from 1 to ${MOST_DEVICES}`);
}

function selectorsOf(value: unknown, field: string): DeviceClass {
  const all = list(value, field).map((each, i) => {
    const at = `${field}[${i}].cel`;
    const expression = text(object(object(each, `${field}[${i}]`).cel, at).expression, `${at}.expression`);
    return { text: expression, expression: parsed(expression, `${at}.expression`) };
  });
  const beyond = all.flatMap((selector) => {
    const what = beyondSubset(selector.expression);
    return what === undefined ? [] : [`${what} in ${display(selector.text)}`];
  });
  return { selectors: all, beyond };
}

function parsed(expression: string, field: string): Expression {
  try {
    return parseCel(expression);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    const place = `character ${error.at + 1} of ${display(expression)}`;
    throw new NumalignError('ERR_INVALID_ARGUMENT', `${field}: ${place}: ${error.message}`, {
      value: expression,
      valid: 'an expression in CEL',
    });
  }
}

function constraintOf(fields: Fields, field: string): Constraint {
  const { matchAttribute, distinctAttribute } = fields;
  const isDistinct = matchAttribute === undefined;
  const name = isDistinct ? 'distinctAttribute' : 'matchAttribute';
  const attribute = text(isDistinct ? distinctAttribute : matchAttribute, `${field}.${name}`);
  if (!attribute.includes('/'))
    invalid(`${field}.${name}`, attribute, `with its domain, such as ${DRIVER}/l3`);
  return { requests: texts(fields.requests, `${field}.requests`), attribute, isDistinct };
}

/** @throws ERR_INVALID_ARGUMENT, which names the field */
export function deviceClassOf(manifest: unknown): DeviceClass {
  const spec = object(object(manifest, 'the manifest').spec ?? {}, 'spec');
  return selectorsOf(spec.selectors, 'spec.selectors');
}

/** The classes that come with numalign-node. */
export const OWN_CLASSES: ReadonlyMap<string, DeviceClass> = new Map(
  [...DEVICE_UNITS, 'memory'].map((kind) => {
    const expression = `device.driver == "${DRIVER}" && device.attributes["${DRIVER}"].kind == "${kind}"`;
    const selectors = [{ text: expression, expression: parseCel(expression) }];
    return [`${kind}.${DRIVER}`, { selectors, beyond: [] }];
  }),
);
