// PCI devices as lines of text for people, one line each. Pure.
import { deviceGroups } from '@numalign/page/words';
import type { PciDevice } from 'numalign/topology';
import { countText, printable, shorten } from '../terminal/text.js';

const LEAST_NAMES = 12;
const LEAST_WIDTH = 30;

interface Row {
  readonly names: string;
  readonly rest: string;
}

/**
 * A line has the kind, names, address, vendor:device and driver of a device. If the physical
 * function of virtual functions is in `all`, its line has their number. Devices of other kinds are
 * left out.
 */
export function deviceLines(
  devices: readonly PciDevice[],
  all: readonly PciDevice[],
  width: number,
): string[] {
  const groups = deviceGroups(devices, all).map(({ kind, devices: list, more }) => {
    return { kind, rows: list.map((device) => row(device, all)), more };
  });
  const widest = (texts: readonly string[]) => Math.max(0, ...texts.map((text) => text.length));
  const rows = groups.flatMap((group) => group.rows);
  const kindWidth = widest(groups.map(({ kind }) => kind));
  const room = width - kindWidth - widest(rows.map(({ rest }) => rest)) - 4;
  const nameWidth = Math.min(widest(rows.map(({ names }) => names)), Math.max(room, LEAST_NAMES));
  const line = (kind: string, text: string) =>
    shorten(`${kind.padEnd(kindWidth)}  ${text}`, Math.max(width, LEAST_WIDTH));
  return groups.flatMap(({ kind, rows, more }) => [
    ...rows.map(({ names, rest }) => {
      const name = nameWidth > 0 ? `${shorten(names, nameWidth).padEnd(nameWidth)}  ` : '';
      return line(kind, `${name}${rest}`);
    }),
    ...(more > 0 ? [line(kind, `and ${more} more (listed by --output json)`)] : []),
  ]);
}

function row({ id, vendor, device, driver, names, parent }: PciDevice, all: readonly PciDevice[]): Row {
  const functions = all.filter((other) => other.parent === id).length;
  const rest = [
    id,
    `${vendor}:${device}`,
    ...(driver === null ? [] : [printable(driver)]),
    ...(functions > 0 ? [countText(functions, 'virtual function')] : []),
    ...(parent === null ? [] : [`virtual function of ${parent}`]),
  ].join('  ');
  return { names: printable(names.join(', ')), rest };
}
