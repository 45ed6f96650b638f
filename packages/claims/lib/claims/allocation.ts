// Allocation: which devices a scheduler would give to claims, as it looks for them: the first that fit,
// in the order of the devices. Pure.
import { EvaluationError, matches, Quantity, type SelectedDevice, type Value } from '../cel/evaluate.js';
import { type AttributeValue, type Device, DRIVER } from '../devices/devices.js';
import { amountFlaw, consumed, ownName } from './amounts.js';
import {
  type Claim,
  type Constraint,
  type DeviceClass,
  type DeviceRequest,
  MOST_DEVICES,
  type Selector,
} from './objects.js';
import { baseRequest } from './parameters.js';
import { type DeviceResult, UNIT } from './parts.js';

/** What claims have of devices, by their names. */
export interface Taken {
  /** In billionths, by capacity. */
  readonly amounts: ReadonlyMap<string, ReadonlyMap<string, bigint>>;
  /** Those that have one claim. */
  readonly whole: ReadonlySet<string>;
}

export const NOTHING_TAKEN: Taken = { amounts: new Map(), whole: new Set() };

export interface Allocated extends DeviceResult {
  readonly device: Device;
}

export interface Allocation {
  readonly results: readonly Allocated[];
  /** What is taken then. */
  readonly taken: Taken;
  /** What of the claim is left to others. */
  readonly notPlanned: readonly string[];
}

/** Why nothing can be allocated. */
export interface NoAllocation {
  readonly reason: string;
  readonly notPlanned: readonly string[];
}

// A scheduler, too, gives up on a pod for which it looks too long.
const MOST_STEPS = 100_000;

export function allocate(
  claim: Claim,
  devices: readonly Device[],
  classes: ReadonlyMap<string, DeviceClass>,
  taken: Taken,
): Allocation | NoAllocation {
  const { planned, constraints, notPlanned } = plannedPart(claim, classes);
  const admin = planned.flat().find(({ isAdmin }) => isAdmin);
  if (admin)
    return { reason: `request ${admin.name}: numalign-node refuses claims with adminAccess`, notPlanned };
  const least = planned.reduce((sum, all) => sum + Math.min(...all.map(leastCount)), 0);
  if (least > MOST_DEVICES)
    return {
      reason: `${least} devices are more than ${MOST_DEVICES}, which a claim has at most`,
      notPlanned,
    };
  try {
    const search = new Search(devices, classes, constraints, taken);
    const results = search.find(planned);
    return results ? { results, taken: search.taken, notPlanned } : { reason: search.reason, notPlanned };
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return { reason: error.message, notPlanned };
  }
}

const leastCount = ({ count }: DeviceRequest) => (count === 'all' ? 1 : count);

type Alternatives = readonly DeviceRequest[];

/** What is allocated here: requests for devices of numalign, and the constraints on them. */
function plannedPart(claim: Claim, classes: ReadonlyMap<string, DeviceClass>) {
  const notPlanned: string[] = [];
  const planned: Alternatives[] = [];
  for (const { name, alternatives } of claim.requests) {
    const flaws = alternatives.flatMap(({ className, beyond }) => {
      const found = classes.get(className);
      return found ? [...found.beyond, ...beyond] : [`${className}, a class of other devices`];
    });
    if (flaws.length === 0) planned.push(alternatives);
    else notPlanned.push(`request ${name}: ${flaws.join(', ')}`);
  }
  const names = planned.flatMap((all) => all.flatMap((each) => [each.name, baseRequest(each.name)]));
  const constraints = claim.constraints.map((constraint) => {
    const others = constraint.requests.filter((name) => !names.includes(name));
    const isOfOthers = constraint.requests.length === 0 && planned.length < claim.requests.length;
    if (others.length > 0 || isOfOthers) {
      const kind = constraint.isDistinct ? 'distinctAttribute' : 'matchAttribute';
      notPlanned.push(`${kind} ${constraint.attribute} with ${others.join(', ') || 'other requests'}`);
    }
    return constraint;
  });
  return { planned, constraints, notPlanned };
}

class Search {
  readonly #devices: readonly { readonly device: Device; readonly seen: SelectedDevice }[];
  readonly #classes: ReadonlyMap<string, DeviceClass>;
  readonly #constraints: readonly Constraint[];
  readonly #matching = new Map<DeviceRequest, readonly Device[]>();
  #results: Allocated[] = [];
  #steps = 0;
  #reason: string | undefined;
  #deepest = -1;
  taken: Taken;

  constructor(
    devices: readonly Device[],
    classes: ReadonlyMap<string, DeviceClass>,
    constraints: readonly Constraint[],
    taken: Taken,
  ) {
    this.#devices = devices.map((device) => ({ device, seen: seenOf(device) }));
    this.#classes = classes;
    this.#constraints = constraints;
    this.taken = taken;
  }

  get reason(): string {
    return this.#reason ?? 'there are no devices';
  }

  /** Undefined if there are none. @throws EvaluationError */
  find(requests: readonly Alternatives[]): readonly Allocated[] | undefined {
    return this.#request(requests, 0) ? this.#results : undefined;
  }

  #request(requests: readonly Alternatives[], i: number): boolean {
    if (i === requests.length) return true;
    return requests[i]!.some((request) => {
      const rest = () => this.#request(requests, i + 1);
      return request.count === 'all'
        ? this.#allOf(request, rest)
        : this.#devicesFor(request, request.count, rest);
    });
  }

  #allOf(request: DeviceRequest, rest: () => boolean): boolean {
    const all = this.#candidates(request);
    if (all.length === 0) this.#tell(request, 1, []);
    return all.length > 0 && this.#eachOf(request, all, rest);
  }

  #eachOf(request: DeviceRequest, [device, ...others]: readonly Device[], rest: () => boolean): boolean {
    if (!device) return rest();
    const flaw = this.#flawOf(request, device);
    if (flaw === undefined) return this.#with(request, device, () => this.#eachOf(request, others, rest));
    this.#tell(request, others.length + 1, [`${device.name}: ${flaw}`]);
    return false;
  }

  #devicesFor(request: DeviceRequest, count: number, rest: () => boolean): boolean {
    if (count === 0) return rest();
    const flaws: string[] = [];
    for (const device of this.#candidates(request)) {
      if (++this.#steps > MOST_STEPS) {
        this.#reason = `no devices were found in ${MOST_STEPS} steps`;
        return false;
      }
      const flaw = this.#flawOf(request, device);
      if (flaw !== undefined) {
        flaws.push(`${device.name}: ${flaw}`);
        continue;
      }
      if (this.#with(request, device, () => this.#devicesFor(request, count - 1, rest))) return true;
    }
    this.#tell(request, count, flaws);
    return false;
  }

  // The reason that comes up first where most was found says most.
  #tell({ name, className }: DeviceRequest, count: number, flaws: readonly string[]): void {
    if (this.#results.length <= this.#deepest || this.#steps > MOST_STEPS) return;
    this.#deepest = this.#results.length;
    const why =
      flaws.length === 0 ? `no device of ${className} matches` : flaws.slice(0, MOST_FLAWS).join(', ');
    const more = flaws.length > MOST_FLAWS ? ` and ${flaws.length - MOST_FLAWS} more` : '';
    this.#reason = `request ${name} lacks ${count} of its devices: ${why}${more}`;
  }

  #candidates(request: DeviceRequest): readonly Device[] {
    const known = this.#matching.get(request);
    if (known) return known;
    const selectors: readonly Selector[] = [
      ...this.#classes.get(request.className)!.selectors,
      ...request.selectors,
    ];
    const found = this.#devices.filter(({ device, seen }) =>
      selectors.every((selector) => {
        try {
          return matches(selector.expression, seen);
        } catch (error) {
          if (!(error instanceof EvaluationError)) throw error;
          // The scheduler gives up on the whole pod then.
          throw new EvaluationError(
            `request ${request.name}: ${selector.text} has no value for ${device.name}: ${error.message}`,
          );
        }
      }),
    );
    const devices = found.map(({ device }) => device);
    this.#matching.set(request, devices);
    return devices;
  }

  #flawOf(request: DeviceRequest, device: Device): string | undefined {
    if (this.taken.whole.has(device.name)) return 'it is taken';
    if (this.#results.length === MOST_DEVICES) return `a claim has at most ${MOST_DEVICES} devices`;
    return (
      amountFlaw(request, device, this.taken.amounts.get(device.name)) ??
      this.#constraintFlaw(request, device)
    );
  }

  #constraintFlaw({ name }: DeviceRequest, device: Device): string | undefined {
    const isOf = (constraint: Constraint, request: string) =>
      constraint.requests.length === 0 ||
      constraint.requests.includes(request) ||
      constraint.requests.includes(baseRequest(request));
    for (const constraint of this.#constraints.filter((each) => isOf(each, name))) {
      const { attribute, isDistinct } = constraint;
      const own = valuesOf(device, attribute);
      if (own.length === 0) return `it has no ${attribute}`;
      const others = this.#results.filter((each) => isOf(constraint, each.request));
      const sets = others.map((each) => valuesOf(each.device, attribute));
      const common = sets.reduce((all, set) => all.filter((value) => set.includes(value)), own);
      const isTwice = sets.some((set) => set.some((value) => own.includes(value)));
      if (isDistinct ? isTwice : common.length === 0)
        return `its ${attribute} is ${own.join(', ')}, ${isDistinct ? 'as' : 'not as'} of ${others[0]!.device.name}`;
    }
    return undefined;
  }

  #with(request: DeviceRequest, device: Device, rest: () => boolean): boolean {
    const [before, results] = [this.taken, this.#results];
    const amounts = device.isShared ? consumed(request, device) : new Map<string, bigint>();
    const had = before.amounts.get(device.name) ?? new Map<string, bigint>();
    const sum = new Map([...amounts].map(([name, amount]) => [name, amount + (had.get(name) ?? 0n)]));
    this.taken = device.isShared
      ? { ...before, amounts: new Map([...before.amounts, [device.name, sum]]) }
      : { ...before, whole: new Set([...before.whole, device.name]) };
    this.#results = [
      ...results,
      { request: request.name, device, amounts, asked: request.amounts.get('cpu') },
    ];
    if (rest()) return true;
    [this.taken, this.#results] = [before, results];
    return false;
  }
}

const MOST_FLAWS = 4;

const valuesOf = ({ attributes }: Device, attribute: string): readonly unknown[] => {
  const value = attributes.get(attribute) ?? attributes.get(ownName(attribute) ?? '');
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
};

/** As selectors see it: each name in its domain. */
function seenOf({ attributes, capacity, isShared }: Device): SelectedDevice {
  const domains = <T, U>(entries: ReadonlyMap<string, T>, value: (each: T) => U) => {
    const all = new Map<string, Map<string, U>>();
    for (const [name, each] of entries) {
      const [domain, id] = name.includes('/') ? (name.split('/') as [string, string]) : [DRIVER, name];
      all.set(domain, (all.get(domain) ?? new Map()).set(id, value(each)));
    }
    return all;
  };
  return {
    driver: DRIVER,
    allowMultipleAllocations: isShared,
    attributes: domains(attributes, celValue),
    capacity: domains(capacity, ({ value }) => new Quantity(BigInt(value) * UNIT)),
  };
}

const celValue = (value: AttributeValue): Value => (typeof value === 'number' ? BigInt(value) : value);
