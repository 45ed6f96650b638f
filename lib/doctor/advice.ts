// Words of findings that several checks use.
import { shellWord } from '../base/text/shell-word.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { MachineFacts } from './facts.js';

// More would not be read.
export const MOST_NAMED = 4;

export function listSome<T>(all: readonly T[], textOf: (one: T) => string): string {
  const more = all.length - MOST_NAMED;
  return [...all.slice(0, MOST_NAMED).map(textOf), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** As it is typed for the same state folder. */
export function command({ stateFolder: { path, scope } }: MachineFacts, words: string): string {
  return `\`numalign ${words}${scope === 'machine' ? '' : ` --state-dir ${shellWord(path)}`}\``;
}

// Such work can only go to CPUs that are nobody's.
export function moveAway(facts: MachineFacts, how: (cpus: CpuSet) => string): string {
  const { online, candidates, firstCore } = facts;
  const others = online.difference(candidates);
  if (!others.isEmpty) return how(others);
  const rest = candidates.difference(firstCore);
  if (rest.isEmpty) return `there is no CPU to spare for such work: all of ${candidates} would be reserved`;
  return `keep CPUs for such work, ${command(facts, `configure --reserved ${firstCore}`)}; then ${how(firstCore)}`;
}
