// What a pod's containers have or would have, as a table. Pure.
import type { PodContainer } from '../managers/plan.js';
import { cpusText } from './status-text.js';
import { table } from './table.js';
import { type Colors, PLAIN } from './terminal.js';
import { listed, printable } from './text.js';

export interface PodTextOptions {
  readonly width: number;
  readonly colors?: Colors;
}

export function podTable(containers: readonly PodContainer[], { width, colors = PLAIN }: PodTextOptions): string[] {
  const columns = ['CONTAINER', 'KIND', 'CPUS', 'HELD', 'NUMA'].map((title) => ({ title }));
  const rows = containers.map(({ name, kind, cpus, held, hint }) => [
    printable(name),
    kind,
    cpusText(cpus),
    listed(held),
    hint.nodes === null ? 'any' : listed(hint.nodes),
  ]);
  return table(columns, rows, { width, colors });
}

/** `pod gateway`: by its name, else by its uid. */
export function podTitle({
  name,
  uid,
}: {
  readonly name: string | undefined;
  readonly uid: string | undefined;
}): string {
  const known = name ?? uid;
  return known === undefined ? 'pod without a name' : `pod ${printable(known)}`;
}
