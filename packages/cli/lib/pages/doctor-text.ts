// The page of `numalign doctor`. Pure.
import { FINDING_STATUSES, type Finding, type FindingStatus } from 'numalign/diagnostics';
import { type Colors, type Page, PLAIN } from '../terminal/terminal.js';
import { countText, fill, printable } from '../terminal/text.js';

const COLORS = { ok: 'green', warning: 'yellow', problem: 'red', unknown: 'dim' } as const satisfies Record<
  FindingStatus,
  keyof Colors
>;
const GAP = '  ';
// A narrower text would be unreadable.
const LEAST_TEXT = 30;

/** The whole page, with a line feed at its end. */
export function doctorText(findings: readonly Finding[], { width, colors = PLAIN }: Page): string {
  const groups = [...new Set(findings.map(({ group }) => group))];
  const statusWidth = Math.max(...FINDING_STATUSES.map((status) => status.length));
  const checkWidth = Math.max(...findings.map(({ check }) => check.length));
  const indent = ' '.repeat(statusWidth + checkWidth + 2 * GAP.length);
  const adviceIndent = ' '.repeat(statusWidth + GAP.length);
  const fillText = (text: string, before: string) =>
    fill(wordsOf(printable(text)), Math.max(width - before.length, LEAST_TEXT));
  const lines = ({ check, status, found, advice }: Finding) => {
    const head = `${colors[COLORS[status]](status.padEnd(statusWidth))}${GAP}${check.padEnd(checkWidth)}${GAP}`;
    const foundLines = fillText(found, indent).map((line, i) => (i === 0 ? head : indent) + line);
    const adviceLines =
      advice === null
        ? []
        : fillText(`-> ${advice}`, adviceIndent).map((line) => adviceIndent + colors.cyan(line));
    return [...foundLines, ...adviceLines];
  };
  const blocks = groups.map((group) => [
    colors.bold(group),
    ...findings.filter((finding) => finding.group === group).flatMap(lines),
    '',
  ]);
  return `${[...blocks.flat(), summary(findings)].join('\n')}\n`;
}

// Keeps code in backticks in one piece, so that it can be copied.
const wordsOf = (text: string) => text.match(/(?:`[^`]*`|\S)+/g) ?? [];

function summary(findings: readonly Finding[]): string {
  const countOf = (status: FindingStatus) => findings.filter((finding) => finding.status === status).length;
  return [
    countText(countOf('problem'), 'problem'),
    countText(countOf('warning'), 'warning'),
    `${countOf('unknown')} unknown`,
    `${countOf('ok')} ok`,
  ].join(', ');
}
