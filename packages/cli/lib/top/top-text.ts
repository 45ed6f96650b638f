// The page of `numalign top`. Pure.
import { cpusText, freeCpusText, idLength, sharedText, since } from '@numalign/page/words';
import type { StateStatus } from 'numalign/diagnostics';
import { foreignLines } from '../pages/status/watch-text.js';
import { type Column, table } from '../terminal/table.js';
import type { Page } from '../terminal/terminal.js';
import { fitPage, printable } from '../terminal/text.js';
import { FIGURES, type FigureName, type Order, SORTS, sorted, type TopRow } from './figures.js';

const UNKNOWN = '-';

const COLUMNS: readonly (Column & { readonly figure: FigureName })[] = [
  { title: 'RUN', figure: 'runNsPerSecond' },
  { title: 'DELAY', figure: 'runDelayNsPerSecond' },
  { title: 'INVOLUNTARY', figure: 'involuntarySwitchesPerSecond' },
  { title: 'FOREIGN', figure: 'foreignTasks' },
  { title: 'INTERRUPTS', figure: 'interruptsPerSecond' },
  { title: 'ELSEWHERE', figure: 'memoryElsewhereBytes', isLesser: true },
  { title: 'KERNEL', figure: 'kernelTasks', isLesser: true },
  { title: 'THREADS', figure: 'threads', isLesser: true },
  { title: 'THROTTLED', figure: 'throttledPerSecond', isLesser: true },
];

/** What one look has found. */
export interface TopLook {
  readonly stateDir: string;
  readonly time: Date;
  readonly status: StateStatus;
  readonly rows: readonly TopRow[];
  /** True on a machine where memory can be on another NUMA node. */
  readonly hasNodes: boolean;
}

/** What the user has chosen. */
export interface TopChoice {
  readonly seconds: number;
  readonly order: Order;
  /** True if keys are read: then the page names them. */
  readonly hasKeys: boolean;
}

/** `[d]elay`, or `in[t]errupts`. */
const marked = (word: string, key: string) => word.replace(key, `[${key}]`);

function keysLine(hasNodes: boolean): string {
  const sorts = Object.entries(SORTS).filter(([name]) => hasNodes || name !== 'elsewhere');
  return ['quit', ...sorts.map(([name]) => name)]
    .map((word) => marked(word, { quit: 'q', ...SORTS }[word]!))
    .join(' ');
}

const nameOf = ({ grant: { uid, name } }: TopRow, length: number) =>
  printable(name === uid ? uid.slice(0, length) : name);

function cellOf({ figures, now }: TopRow, name: FigureName): string {
  const value = figures[name];
  if (value === null) return UNKNOWN;
  // If processes are hidden, there may be more.
  const more = name === 'foreignTasks' && !now.seesAllTasks ? '+' : '';
  return `${FIGURES[name].text(value)}${more}`;
}

/** The whole page, with a line feed at its end. */
export function topText(look: TopLook, { seconds, order, hasKeys }: TopChoice, page: Page): string {
  const { stateDir, time, status, hasNodes } = look;
  const every = seconds === 1 ? 'every second' : `every ${seconds} s`;
  const title = `${stateDir}, ${since(time.toISOString())}, ${every}`;
  const keys = hasKeys ? [keysLine(hasNodes)] : [];
  if (!status.exists) return `${[title, ...keys].join('\n')}\n\nNo state: nothing is granted.\n`;
  const rows = sorted(look.rows, order);
  const columns = COLUMNS.filter(({ figure }) => hasNodes || figure !== 'memoryElsewhereBytes');
  const length = idLength(rows.map(({ grant }) => grant.uid));
  const cells = rows.map((row) => [
    nameOf(row, length),
    cpusText(row.grant.cpus),
    ...columns.map(({ figure }) => cellOf(row, figure)),
  ]);
  const foreign = rows.flatMap(({ now, grant }) => foreignLines(now, grant, length));
  const lines = [
    title,
    `shared: ${sharedText(status)}, free: ${freeCpusText(status, status.free)}; a second, sorted by ${order.by}${order.isReversed ? ', reversed' : ''}`,
    ...keys,
    '',
    ...(rows.length === 0
      ? ['No grants.']
      : table([{ title: 'NAME', flexible: true }, { title: 'CPUS' }, ...columns], cells, page)),
    ...(foreign.length > 0 ? ['', 'foreign tasks on these CPUs:', ...foreign] : []),
  ];
  return fitPage(`${lines.join('\n')}\n`, page);
}

/** The document of one look, in the order that was chosen. */
export function topJson({ stateDir, time, status, rows }: TopLook, order: Order): object {
  const grants = sorted(rows, order).map(({ grant: { uid, name, cpus, owner, flags }, figures }) => {
    return { uid, name, cpus, owner, flags, figures };
  });
  return { time, stateDir, generation: status.exists ? status.generation : null, grants };
}
