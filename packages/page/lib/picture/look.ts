// The looks of a machine's parts: colours and words for their use.
import type { CpuSet } from 'numalign';
import { besideText } from '../words/resource-text.js';
import { fill } from '../words/text.js';
import { type Block, charactersIn, frame, line, stack } from './blocks.js';
import type { Holder } from './holdings.js';
import { holderClass } from './style.js';

export const TEXT = 12;
export const SMALL = 10.5;

export function fillLines(
  text: string,
  width: number,
  options: { size: number; className?: string },
): Block[] {
  return fill(text.split(' '), charactersIn(width, options.size)).map((each) => line(each, options));
}

/** The class of a part that a grant can hold, and its holder in words. */
export interface Look {
  readonly className: string;
  readonly text: string;
}

export const USES = {
  free: { className: 'free', text: 'free (shared until granted)' },
  reserved: { className: 'reserved', text: 'reserved' },
  isolated: { className: 'isolated', text: 'isolated, free' },
  unmanaged: { className: 'unmanaged', text: 'not managed' },
  offline: { className: 'offline', text: 'offline' },
} as const;

/** The look of a CPU that the kernel isolates, in a picture without holdings. */
export const ISOLATED: Look = { className: 'isolated', text: 'isolated' };

export const SPANNING: Look = { className: 'granted', text: 'on several nodes' };

export function lookOf({ name, isHighlighted, color }: Holder, index: number): Look {
  return { className: `${holderClass(color ?? index)}${isHighlighted ? ' highlighted' : ''}`, text: name };
}

export function cpusDetails(cpus: CpuSet): string {
  return cpus.isEmpty ? '' : `CPUs ${cpus}`;
}

export function joinParts(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('; ');
}

export function detailsOf({ cpus, memory, devices, note = '' }: Holder): string {
  return joinParts([cpusDetails(cpus) || 'shared pool', besideText(memory, devices), note]);
}

/** A box with a head: its title, and a line about it. */
export function frameWithTitle(
  className: string,
  title: string,
  about: string | undefined,
  content: readonly Block[],
): Block {
  const head = [
    line(title, { size: TEXT, className: 'strong' }),
    ...(about === undefined ? [] : [line(about, { size: SMALL, className: 'quiet', maxWidth: HEAD_WIDTH })]),
  ];
  return frame(stack([stack(head, 0), ...content], 6), 8, className);
}
/** The greatest width of the line about a box. */
export const HEAD_WIDTH = 250;
