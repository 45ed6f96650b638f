// Quiet: the kernel work that annotations keep off a container's CPUs. Pure.
import type { QuietOptions, QuietOutcome, QuietPart } from 'numalign/diagnostics';
import { checkAcquireOptions, parseQuietPart, QUIET_PARTS, QUIET_TEXT, unlessRefused } from 'numalign/tools';
import { type FindAnnotation, invalid } from './annotation-text.js';

export interface QuietWish {
  readonly quiet: QuietOptions;
  /** The parts without which the container is refused. */
  readonly required: readonly QuietPart[];
}

const PARTS = `parts such as interrupts,idle=20,cache=25%: ${QUIET_TEXT}`;

const isPart = (name: string): name is QuietPart => QUIET_PARTS.some((part) => part === name);

/**
 * What `quiet`, `require-quiet` and `housekeeping` ask for; undefined if nothing.
 * @throws NodeError ERR_INVALID_ANNOTATION
 */
export function quietWish(find: FindAnnotation): QuietWish | undefined {
  const [text, requiredText, count] = ['quiet', 'require-quiet', 'housekeeping'].map(find);
  if (text === undefined) {
    for (const [key, value] of Object.entries({ 'require-quiet': requiredText, housekeeping: count }))
      if (value !== undefined) invalid(key, value, 'left out without numalign.io/quiet');
    return undefined;
  }
  const parts = text.split(',').map((part) => parseQuietPart(part.trim()) ?? invalid('quiet', text, PARTS));
  const quiet: QuietOptions = Object.assign({}, ...parts);
  if (!isAccepted(quiet)) invalid('quiet', text, PARTS);
  const required = requiredText === undefined ? [] : requiredText.split(',').map((part) => part.trim());
  const isAsked = (part: string): part is QuietPart => isPart(part) && quiet[part] !== undefined;
  if (!required.every(isAsked)) invalid('require-quiet', requiredText!, 'parts that numalign.io/quiet names');
  if (count === undefined) return { quiet, required };
  const housekeeping = Number(count);
  if (!isAccepted({ ...quiet, housekeeping })) invalid('housekeeping', count, 'a number of CPUs from 1 on');
  return { quiet: { ...quiet, housekeeping }, required };
}

const isAccepted = (quiet: QuietOptions): boolean =>
  unlessRefused(() => {
    checkAcquireOptions({ cpu: 1, quiet });
    return true;
  }, false);

/** @throws NodeError ERR_INVALID_ANNOTATION if kernel work could use all of the container's CPUs */
export function checkHousekeeping({ quiet: { housekeeping } }: QuietWish, exclusiveCpus: number): void {
  if (housekeeping === undefined || exclusiveCpus === 0 || housekeeping < exclusiveCpus) return;
  invalid('housekeeping', String(housekeeping), `fewer than the ${exclusiveCpus} CPUs of the container`);
}

// Each interrupt can be a reason, and a machine has hundreds.
const SHOWN_REASONS = 3;

/** What is not fully reached, and why; null: nothing was asked of the grant. */
export function disturbances(outcome: QuietOutcome | null): readonly string[] {
  if (!outcome) return ['the CPUs were not granted as quiet ones'];
  return Object.entries(outcome.parts).flatMap(([part, { reached, reasons }]) => {
    if (reached === 'yes') return [];
    const more = reasons.length - SHOWN_REASONS;
    const list = [...reasons.slice(0, SHOWN_REASONS), ...(more > 0 ? [`and ${more} more`] : [])];
    return [`${part} is reached ${reached === 'no' ? 'not at all' : 'partly'}: ${list.join('; ')}`];
  });
}
