// Advice: texts that several checks use.

import type { QuietPart } from '../account/pod-assignment.js';
import { shellWord } from '../base/text/shell-word.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { MachineFacts } from './facts.js';

// A longer list would not be read.
export const MOST_NAMED = 4;

export function listSome<T>(all: readonly T[], textOf: (one: T) => string): string {
  const more = all.length - MOST_NAMED;
  return [...all.slice(0, MOST_NAMED).map(textOf), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** The command for the same state folder. */
export function command({ stateFolder: { path, scope } }: MachineFacts, words: string): string {
  return `\`numalign ${words}${scope === 'machine' ? '' : ` --state-dir ${shellWord(path)}`}\``;
}

/** Advice to use a part of quiet. */
export function byQuiet({ user }: MachineFacts, part: QuietPart): string {
  const how = `\`numalign run --quiet ${part}\`, or \`quiet: { ${part}: true }\``;
  return `numalign can do this for a grant while it lasts${user === 0 ? '' : ', as root'}: ${how}`;
}

/** The CPUs that can be granted, less one core for everything else. */
export function grantable({ online, candidates, firstCore }: MachineFacts): CpuSet {
  return online.isSubsetOf(candidates) ? candidates.difference(firstCore) : candidates;
}
