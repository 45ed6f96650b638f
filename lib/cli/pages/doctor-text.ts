// The page of `numalign doctor`. Pure.
import { FINDING_STATUSES, type Finding, type FindingStatus } from '../../entries/diagnostics.js';
import { type Colors, type Page, PLAIN } from '../terminal/terminal.js';
import { counted, fill, printable } from '../terminal/text.js';

const COLORS = { ok: 'green', warning: 'yellow', problem: 'red', unknown: 'dim' } as const satisfies Record<
  FindingStatus,
  keyof Colors
>;
const GAP = '  ';
// Narrower, a text could not be read.
const LEAST_TEXT = 30;

/** The whole page, ending with a line feed. */
export function doctorText(findings: readonly Finding[], { width, colors = PLAIN }: Page): string {
  const groups = [...new Set(findings.map(({ group }) => group))];
  const statusWidth = Math.max(...FINDING_STATUSES.map((status) => status.length));
  const checkWidth = Math.max(...findings.map(({ check }) => check.length));
  const indent = ' '.repeat(statusWidth + checkWidth + 2 * GAP.length);
  const adviceIndent = ' '.repeat(statusWidth + GAP.length);
  const filled = (text: string, before: string) =>
    fill(wordsOf(printable(text)), Math.max(width - before.length, LEAST_TEXT));
  const lines = ({ check, status, found, advice }: Finding) => {
    const head = `${colors[COLORS[status]](status.padEnd(statusWidth))}${GAP}${check.padEnd(checkWidth)}${GAP}`;
    const foundLines = filled(found, indent).map((line, i) => (i === 0 ? head : indent) + line);
    const adviceLines =
      advice === null
        ? []
        : filled(`-> ${advice}`, adviceIndent).map((line) => adviceIndent + colors.cyan(line));
    return [...foundLines, ...adviceLines];
  };
  const blocks = groups.map((group) => [
    colors.bold(group),
    ...findings.filter((finding) => finding.group === group).flatMap(lines),
    '',
  ]);
  return `${[...blocks.flat(), summary(findings)].join('\n')}\n`;
}

// What is to be typed stays in one piece, to be copied.
const wordsOf = (text: string) => text.match(/(?:`[^`]*`|\S)+/g) ?? [];

function summary(findings: readonly Finding[]): string {
  const countOf = (status: FindingStatus) => findings.filter((finding) => finding.status === status).length;
  return [
    counted(countOf('problem'), 'problem'),
    counted(countOf('warning'), 'warning'),
    `${countOf('unknown')} unknown`,
    `${countOf('ok')} ok`,
  ].join(', ');
}
