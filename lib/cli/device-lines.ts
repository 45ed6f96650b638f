// PCI devices as lines of text, for people: a line a device at eight of them or at two hundred. Pure.
import type { PciDevice } from '../topology.js';
import { counted, printable, shorten } from './text.js';

const KINDS = ['network', 'storage', 'accelerator'] as const;
/** Of one kind in one place; beyond it they are counted. */
const MAX_OF_A_KIND = 16;
const LEAST_NAMES = 12;
const LEAST_WIDTH = 30;

interface Row {
  readonly kind: string;
  readonly names: string;
  readonly rest: string;
}

/**
 * What it is, its names, address, vendor:device, driver. Virtual functions are counted at their physical function, wherever that is among `all`; devices of
 * other kinds are left out.
 */
export function deviceLines(devices: readonly PciDevice[], all: readonly PciDevice[], width: number): string[] {
  const parents = new Set(all.filter(({ kind }) => kind !== 'other').map(({ id }) => id));
  const rows = KINDS.flatMap((kind): Row[] => {
    const shown = devices.filter(({ kind: own, parent }) => own === kind && !(parent !== null && parents.has(parent)));
    const more = shown.length - MAX_OF_A_KIND;
    return [
      ...shown.slice(0, MAX_OF_A_KIND).map((device) => row(device, all)),
      ...(more > 0 ? [{ kind, names: '', rest: `and ${more} more (listed by --output json)` }] : []),
    ];
  });
  const widest = (column: keyof Row) => Math.max(0, ...rows.map((row) => row[column].length));
  const kindWidth = widest('kind');
  const room = width - kindWidth - widest('rest') - 4;
  const nameWidth = Math.min(widest('names'), Math.max(room, LEAST_NAMES));
  return rows.map(({ kind, names, rest }) => {
    const name = nameWidth > 0 ? `${shorten(names, nameWidth).padEnd(nameWidth)}  ` : '';
    return shorten(`${kind.padEnd(kindWidth)}  ${name}${rest}`, Math.max(width, LEAST_WIDTH));
  });
}

function row({ id, kind, vendor, device, driver, names, parent }: PciDevice, all: readonly PciDevice[]): Row {
  const functions = all.filter((other) => other.parent === id).length;
  const rest = [
    id,
    `${vendor}:${device}`,
    ...(driver === null ? [] : [printable(driver)]),
    ...(functions > 0 ? [counted(functions, 'virtual function')] : []),
    ...(parent === null ? [] : [`virtual function of ${parent}`]),
  ].join('  ');
  return { kind, names: printable(names.join(', ')), rest };
}
