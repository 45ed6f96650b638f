// The table of what holds CPUs, memory and devices: the picture in words. Pure.
import type { GrantStatus } from 'numalign/diagnostics';
import { formatBytes, printable } from 'numalign/tools';
import type { Holder } from '../picture/holdings.js';
import { lookOf } from '../picture/look.js';
import { ownerText } from '../words/owner-text.js';
import { delayText, rateText, runText, UNKNOWN } from '../words/rates.js';
import { besideText, cpusText, elasticText, withMixed } from '../words/resource-text.js';
import { countText, listText } from '../words/text.js';
import { type Figures, knownFigures } from './figures.js';
import { type Column, element, escaped, type Row, swatch, table, textElement } from './html.js';

/** A grant, or a pod of the kubelet, with its look in the picture. */
export interface Shown {
  readonly holder: Holder;
  readonly grant?: GrantStatus | undefined;
  readonly figures?: Figures | undefined;
}

/** Further rows would only be long to read. */
const MOST_ROWS = 500;

const number = (title: string, about: string): Column => ({ title, about, isNumber: true });

const COLUMNS: readonly Column[] = [
  { title: 'Name' },
  { title: 'CPUs' },
  { title: 'NUMA', about: 'NUMA nodes of its CPUs' },
  { title: 'Memory and devices' },
  { title: 'Owner' },
  { title: 'Level', about: 'enforcement level: what keeps others off its CPUs' },
  number('Run', 'how long its threads run, as a share of one CPU'),
  number('Delay', 'how long its threads wait for a CPU'),
  number('Involuntary', 'how often its threads have to leave a CPU to another task'),
  number('Interrupts', 'interrupts on its CPUs'),
  number('Foreign', 'tasks of other processes that ran on its CPUs'),
];
const ELSEWHERE = number('Elsewhere', 'memory of its processes on other NUMA nodes');

/** `memory`: with the column about memory elsewhere. */
export function grantSection(shown: readonly Shown[], memory: boolean): string {
  if (shown.length === 0) return element('p', {}, 'None: every CPU that is not reserved is free.');
  const rows = shown.slice(0, MOST_ROWS).map((each, i) => rowOf(each, i, memory));
  const more = shown.length - rows.length;
  const rest = more > 0 ? element('p', {}, `and ${countText(more, 'grant')} more`) : '';
  return table('Grants', memory ? [...COLUMNS, ELSEWHERE] : COLUMNS, rows) + rest;
}

function rowOf(shown: Shown, index: number, memory: boolean): Row {
  const { holder, grant } = shown;
  const name = swatch(lookOf(holder, index).className) + textElement('span', holder.name, { class: 'name' });
  const notes = grant ? notesOf(grant) : [];
  const about = notes.map((note) => textElement('div', note, { class: 'note' })).join('');
  const facts = [besideText(holder.memory, holder.devices), grant ? ownerText(grant) : 'kubelet'];
  return {
    key: grant?.uid ?? holder.name,
    cells: [
      name + about,
      ...[cpusOf(shown), grant && !grant.cpus.isEmpty ? listText(grant.numaNodes) : '', ...facts].map(
        escaped,
      ),
      escaped(grant?.enforcement ?? ''),
      ...figureCells(shown, memory).map(escaped),
    ],
  };
}

function cpusOf({ holder, grant }: Shown): string {
  if (!grant) return cpusText(holder.cpus);
  return `${withMixed(cpusText(grant.cpus), grant.mixed)}${elasticText(grant.elastic)}`;
}

function notesOf({ alive, isIsolated, upcoming, flags }: GrantStatus): string[] {
  return [
    ...(alive ? [] : ['dead: taken back at the next transaction']),
    ...(isIsolated ? ['on isolated CPUs'] : []),
    ...(upcoming ? [`moves to ${cpusText(upcoming)}`] : []),
    ...flags.map(({ message }) => printable(message)),
  ];
}

function figureCells({ grant, figures }: Shown, memory: boolean): string[] {
  if (!grant || !figures) return Array.from({ length: memory ? 6 : 5 }, () => UNKNOWN);
  const known = knownFigures(figures, grant);
  const { elapsedMs, runTimeNs, runDelayNs, involuntarySwitches, interrupts, foreignTasks } = known;
  const { elsewhereBytes } = known;
  return [
    runText(runTimeNs, elapsedMs),
    delayText(runDelayNs, elapsedMs),
    rateText(involuntarySwitches, elapsedMs),
    rateText(interrupts, elapsedMs),
    foreignTasks === null ? UNKNOWN : String(foreignTasks),
    ...(memory ? [elsewhereBytes === null ? UNKNOWN : formatBytes(elsewhereBytes)] : []),
  ];
}
