// PCI devices as lines of text, for people: a line a device at eight of them or at two hundred.
// Pure.
import type { PciDevice } from '../../entries/topology.js';
import { counted, printable, shorten } from '../terminal/text.js';
import { shownDevices } from './machine-boxes.js';

const LEAST_NAMES = 12;
const LEAST_WIDTH = 30;

interface Row {
  readonly names: string;
  readonly rest: string;
}

/**
 * What it is, its names, address, vendor:device, driver. Virtual functions are counted at their
 * physical function, wherever that is among `all`; devices of other kinds are left out.
 */
export function deviceLines(
  devices: readonly PciDevice[],
  all: readonly PciDevice[],
  width: number,
): string[] {
  const groups = shownDevices(devices, all).map(({ kind, devices: shown, more }) => {
    return { kind, rows: shown.map((device) => row(device, all)), more };
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
    ...(functions > 0 ? [counted(functions, 'virtual function')] : []),
    ...(parent === null ? [] : [`virtual function of ${parent}`]),
  ].join('  ');
  return { names: printable(names.join(', ')), rest };
}
