// The parts of quiet that a grant has reached, in words. Pure.
import type { PartOutcome, QuietOutcome } from 'numalign/diagnostics';
import { printable } from '../terminal/text.js';

const partsIn = (outcome: QuietOutcome | null): [name: string, PartOutcome][] =>
  Object.entries(outcome?.parts ?? {});

/** The fully reached parts: `quiet: interrupts, idle`; empty for none. */
export function quietText(outcome: QuietOutcome | null): string {
  const names = partsIn(outcome).flatMap(([name, { reached }]) => (reached === 'yes' ? [name] : []));
  return names.length === 0 ? '' : `quiet: ${names.join(', ')}`;
}

// Each IRQ can be a reason, and a machine has hundreds.
const SHOWN_REASONS = 4;

/** A line with the reasons for each part that is not fully reached. */
export function quietLines(outcome: QuietOutcome | null): string[] {
  return partsIn(outcome).flatMap(([name, { reached, reasons }]) => {
    if (reached === 'yes') return [];
    const more = reasons.length - SHOWN_REASONS;
    const list = [...reasons.slice(0, SHOWN_REASONS), ...(more > 0 ? [`and ${more} more`] : [])];
    return [printable(`quiet ${name}: ${reached}: ${list.join('; ')}`)];
  });
}
