// What of a grant's quiet is reached, in words. Pure.
import type { PartOutcome, QuietOutcome } from '../../entries/diagnostics.js';
import { printable } from '../terminal/text.js';

const partsIn = (outcome: QuietOutcome | null): [name: string, PartOutcome][] =>
  Object.entries(outcome?.parts ?? {});

/** The parts that are wholly reached: `quiet: interrupts, idle`; empty for none. */
export function quietText(outcome: QuietOutcome | null): string {
  const names = partsIn(outcome).flatMap(([name, { reached }]) => (reached === 'yes' ? [name] : []));
  return names.length === 0 ? '' : `quiet: ${names.join(', ')}`;
}

// An IRQ a reason: a machine has hundreds.
const SHOWN_REASONS = 4;

/** A line for each part that is not wholly reached, with what stands in the way. */
export function quietLines(outcome: QuietOutcome | null): string[] {
  return partsIn(outcome).flatMap(([name, { reached, reasons }]) => {
    if (reached === 'yes') return [];
    const more = reasons.length - SHOWN_REASONS;
    const shown = [...reasons.slice(0, SHOWN_REASONS), ...(more > 0 ? [`and ${more} more`] : [])];
    return [printable(`quiet ${name}: ${reached}: ${shown.join('; ')}`)];
  });
}
