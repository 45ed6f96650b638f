// The page of `numalign doctor`. Pure.
import { FINDING_STATUSES, type Finding, type FindingStatus } from '../doctor/finding.js';
import { type Colors, PLAIN } from './terminal.js';
import { counted, fill, printable } from './text.js';

export interface DoctorTextOptions {
  readonly width: number;
  readonly colors?: Colors;
}

const COLORS = { ok: 'green', warning: 'yellow', problem: 'red', unknown: 'dim' } as const satisfies Record<
  FindingStatus,
  keyof Colors
>;
const GAP = '  ';
// Narrower, a text could not be read.
const LEAST_TEXT = 30;

/** The whole page, ending with a line feed. */
export function doctorText(findings: readonly Finding[], { width, colors = PLAIN }: DoctorTextOptions): string {
  const groups = [...new Set(findings.map(({ group }) => group))];
  const statusWidth = Math.max(...FINDING_STATUSES.map((status) => status.length));
  const checkWidth = Math.max(...findings.map(({ check }) => check.length));
  const indent = ' '.repeat(statusWidth + checkWidth + 2 * GAP.length);
  const filled = (text: string, first: string) =>
    fill(
      [first, ...printable(text).split(' ')].filter((word) => word !== ''),
      Math.max(width - indent.length, LEAST_TEXT),
    );
  const lines = ({ check, status, found, advice }: Finding) => {
    const head = `${colors[COLORS[status]](status.padEnd(statusWidth))}${GAP}${check.padEnd(checkWidth)}${GAP}`;
    const foundLines = filled(found, '').map((line, i) => (i === 0 ? head : indent) + line);
    const adviceLines = advice === null ? [] : filled(advice, '->').map((line) => indent + colors.cyan(line));
    return [...foundLines, ...adviceLines];
  };
  const blocks = groups.map((group) => [
    colors.bold(group),
    ...findings.filter((finding) => finding.group === group).flatMap(lines),
    '',
  ]);
  return `${[...blocks.flat(), summary(findings)].join('\n')}\n`;
}

function summary(findings: readonly Finding[]): string {
  const countOf = (status: FindingStatus) => findings.filter((finding) => finding.status === status).length;
  return [
    counted(countOf('problem'), 'problem'),
    counted(countOf('warning'), 'warning'),
    `${countOf('unknown')} unknown`,
    `${countOf('ok')} ok`,
  ].join(', ');
}
