// Amounts: what requests take of a device that claims share. Pure.
import { type Capacity, type Device, DRIVER } from '../devices/devices.js';
import type { DeviceRequest } from './objects.js';
import { UNIT } from './parts.js';

/** Undefined: it is in another domain. */
export const ownName = (name: string): string | undefined =>
  name.startsWith(`${DRIVER}/`) ? name.slice(DRIVER.length + 1) : undefined;

/** Why a device has not what a request asks for. */
export function amountFlaw(
  request: DeviceRequest,
  device: Device,
  taken: ReadonlyMap<string, bigint> | undefined,
): string | undefined {
  const { capacity, isShared } = device;
  const unknown = [...request.amounts.keys()].find((name) => !capacity.has(name));
  if (unknown !== undefined) {
    const own = ownName(unknown);
    return `it has no ${unknown}${own !== undefined && capacity.has(own) ? `; did you mean ${own}?` : ''}`;
  }
  for (const [name, amount] of isShared ? consumed(request, device) : request.amounts) {
    const left = BigInt(capacity.get(name)!.value) * UNIT - (taken?.get(name) ?? 0n);
    if (amount > left) return `${name} ${inUnits(amount)} is more than ${inUnits(left)}`;
  }
  return undefined;
}

const inUnits = (amount: bigint) =>
  amount % UNIT === 0n ? String(amount / UNIT) : `${Number(amount) / Number(UNIT)}`;

/** What a request takes of each capacity: in steps, as the device has them. */
export const consumed = ({ amounts }: DeviceRequest, { capacity }: Device): Map<string, bigint> =>
  new Map([...capacity].map(([name, each]) => [name, consumedOf(amounts.get(name), each)]));

function consumedOf(asked: bigint | undefined, { value, default: byDefault, least, step }: Capacity): bigint {
  if (asked === undefined) return BigInt(byDefault ?? value) * UNIT;
  if (least === undefined) return asked;
  const from = BigInt(least) * UNIT;
  if (asked <= from) return from;
  if (step === undefined) return asked;
  const by = BigInt(step) * UNIT;
  return from + ((asked - from + by - 1n) / by) * by;
}
