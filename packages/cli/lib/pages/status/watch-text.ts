// The page of `numalign status --watch`. Pure.
import {
  cpusText,
  delayText,
  freeCpusText,
  idLength,
  milliseconds,
  rateText,
  runText,
  sharedText,
  since,
  UNKNOWN,
} from '@numalign/page/words';
import type { GrantInfo } from 'numalign';
import type { ForeignTask, GrantAudit, StateStatus } from 'numalign/diagnostics';
import { table } from '../../terminal/table.js';
import type { Page } from '../../terminal/terminal.js';
import { countText, fitPage, printable } from '../../terminal/text.js';

const COLUMNS = [
  { title: 'ID' },
  { title: 'NAME', flexible: true },
  { title: 'CPUS' },
  { title: 'ENFORCEMENT', isLesser: true },
  { title: 'THREADS', isLesser: true },
  { title: 'RUN' },
  { title: 'DELAY' },
  { title: 'INVOLUNTARY' },
  { title: 'FOREIGN' },
  { title: 'INTERRUPTS' },
  { title: 'THROTTLED', isLesser: true },
];
const SHOWN_TASKS = 5;

export const foreignOf = ({ cpus }: GrantAudit) => cpus.flatMap(({ foreign }) => foreign ?? []);

function foreignText(audit: GrantAudit): string {
  if (audit.seesAllTasks === null) return UNKNOWN;
  const tasks = foreignOf(audit);
  const kernel = tasks.filter(({ kind }) => kind === 'kernel').length;
  const others = tasks.length - kernel;
  // If processes are hidden, there may be more.
  return `${others}${audit.seesAllTasks ? '' : '+'}${kernel > 0 ? ` (${kernel} kernel)` : ''}`;
}

function rowOf(audit: GrantAudit, { uid, name, cpus }: GrantInfo, length: number): string[] {
  const { totals, throttling, elapsedMs } = audit;
  return [
    printable(uid.slice(0, length)),
    name === uid ? '-' : printable(name),
    cpusText(cpus),
    audit.enforcement,
    String(audit.threads.length),
    runText(totals.runTimeNs, elapsedMs),
    delayText(totals.runDelayNs, elapsedMs),
    rateText(totals.involuntarySwitches, elapsedMs),
    foreignText(audit),
    rateText(totals.interrupts, elapsedMs),
    rateText(throttling?.nrThrottled ?? null, elapsedMs),
  ];
}

function taskText({ pid, tid, command, kind, runTimeNs }: ForeignTask): string {
  const facts = [
    `pid ${pid}${tid === pid ? '' : `, thread ${tid}`}`,
    ...(kind === 'owner' ? ['of the grant, but not confined to it'] : []),
    ...(runTimeNs === null ? [] : [`ran ${milliseconds(runTimeNs)}`]),
  ];
  return `${command} (${facts.join(', ')})`;
}

/** Without tasks of the kernel, about which users can do little: the table has their number. */
export function foreignLines(audit: GrantAudit, { uid, name }: GrantInfo, length: number): string[] {
  const tasks = foreignOf(audit).filter(({ kind }) => kind !== 'kernel');
  if (tasks.length === 0) return [];
  const most = [...tasks].sort((a, b) => (b.runTimeNs ?? 0) - (a.runTimeNs ?? 0)).slice(0, SHOWN_TASKS);
  const more = tasks.length - most.length;
  const texts = [...most.map(taskText), ...(more > 0 ? [`and ${countText(more, 'task')} more`] : [])];
  return [printable(`  ${name === uid ? uid.slice(0, length) : name}: ${texts.join(', ')}`)];
}

/** The whole page, with a line feed at its end. */
export function watchText({ stateDir, seconds, time, status, audits }: WatchLook, page: Page): string {
  const every = seconds === 1 ? 'every second' : `every ${seconds} s`;
  const title = `${stateDir}, ${since(time.toISOString())}, ${every}`;
  if (!status.exists) return `${title}\n\nNo state: nothing is granted.\n`;
  const rows = audits.flatMap((audit) => {
    const grant = status.grants.find(({ uid }) => uid === audit.grant);
    return grant ? [{ audit, grant }] : [];
  });
  const length = idLength(rows.map(({ grant }) => grant.uid));
  const foreign = rows.flatMap(({ audit, grant }) => foreignLines(audit, grant, length));
  const lines = [
    `${title}; generation ${status.generation}, shared: ${sharedText(status)}, free: ${freeCpusText(status, status.free)}`,
    '',
    ...(rows.length === 0
      ? ['No grants.']
      : table(
          COLUMNS,
          rows.map(({ audit, grant }) => rowOf(audit, grant, length)),
          page,
        )),
    ...(foreign.length > 0 ? ['', 'foreign tasks on these CPUs:', ...foreign] : []),
  ];
  return fitPage(`${lines.join('\n')}\n`, page);
}

/** What one look has found. */
export interface WatchLook {
  readonly stateDir: string;
  readonly seconds: number;
  readonly time: Date;
  readonly status: StateStatus;
  /** What has happened since the last look, for each grant with a living owner. */
  readonly audits: readonly GrantAudit[];
}
