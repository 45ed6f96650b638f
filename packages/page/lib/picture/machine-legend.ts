// The legend of a machine's picture: holders and what they hold in words, for readers without
// colours.
import { CpuSet } from 'numalign';
import type { Topology } from 'numalign/topology';
import { type CpuUse, cpuUse } from '../words/machine-boxes.js';
import { besideText } from '../words/resource-text.js';
import { type Block, row, stack, textWidth } from './blocks.js';
import { exclusiveCpus, type Holdings } from './holdings.js';
import { COLUMN_GAP, LEAST_ROWS, type LegendEntry, legendLeft, legendRow, spaceList } from './legend.js';
import { cpusDetails, detailsOf, ISOLATED, joinParts, lookOf, SPANNING, TEXT, USES } from './look.js';

/** Undefined without entries. */
export function machineLegend(
  topology: Topology,
  holdings: Holdings | undefined,
  width: number,
): Block | undefined {
  const all = holdings ? entriesOfHoldings(topology, holdings) : entriesOfMachine(topology);
  const entries = all.filter(({ details }) => details !== '');
  return entries.length === 0 ? undefined : columns(entries, width);
}

function entriesOfMachine({ isolated, cpus }: Topology): LegendEntry[] {
  return [{ ...ISOLATED, details: cpusDetails(isolated.intersection(cpus)) }];
}

function entriesOfHoldings({ cpus }: Topology, holdings: Holdings): LegendEntry[] {
  const { holders, memory } = holdings;
  const exclusive = exclusiveCpus(holders);
  const cpusOf = (use: CpuUse) =>
    CpuSet.from([...cpus].filter((cpu) => cpuUse(holdings.settings, exclusive, cpu) === use));
  const system = memory.map(({ node, type, systemReserved }) => ({
    nodes: [node],
    type,
    bytes: systemReserved,
  }));
  const spanning = holders.some((holder) => holder.memory.some(({ nodes }) => nodes.length > 1));
  return [
    ...holders.map((holder, i) => ({ ...lookOf(holder, i), details: detailsOf(holder) })),
    ...(spanning ? [{ ...SPANNING, details: 'memory that is booked on several NUMA nodes together' }] : []),
    { ...USES.free, details: cpusDetails(cpusOf('free')) },
    { ...USES.reserved, details: joinParts([cpusDetails(cpusOf('reserved')), besideText(system, {})]) },
    { ...USES.isolated, details: cpusDetails(cpusOf('isolated')) },
    { ...USES.unmanaged, details: cpusDetails(cpusOf('unmanaged')) },
  ];
}

// As many columns as fit, each with at least a few rows.
function columns(entries: readonly LegendEntry[], width: number): Block {
  const names = Math.min(Math.max(...entries.map(({ text }) => textWidth(text, TEXT))), width * 0.45);
  const widest = Math.max(
    ...entries.map(({ details }) => legendLeft(names) + textWidth(spaceList(details), TEXT)),
  );
  const count = Math.min(
    Math.max(1, Math.floor((width + COLUMN_GAP) / (widest + COLUMN_GAP))),
    Math.ceil(entries.length / LEAST_ROWS),
  );
  const column = (width + COLUMN_GAP) / count - COLUMN_GAP;
  const rows = entries.map((entry) => legendRow(entry, names, column));
  const each = Math.ceil(rows.length / count);
  return row(
    Array.from({ length: count }, (_, i) => stack(rows.slice(i * each, (i + 1) * each), 4)),
    COLUMN_GAP,
  );
}
