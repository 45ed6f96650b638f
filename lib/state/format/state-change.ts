// The changes of one commit, as a line of the journal. Pure.
import type { NamedCpus } from '../../account/assignments.js';
import { rememberNames } from '../../account/pod-changes.js';
import { podListChanges, podsAfter } from '../../account/pod-list-changes.js';
import { type Checkpoint, cpusText, versionFor } from './checkpoint.js';
import { encodeSettings, kubeletText, podsText, quietText } from './pod-text.js';
import { textOfMembers } from './sealed-json.js';

/**
 * The text of the change from one checkpoint to the next; undefined if a change line cannot express
 * it.
 */
export function changeText(
  before: Checkpoint,
  { assignments: next, ...header }: Checkpoint,
): string | undefined {
  const { assignments } = before;
  if (header.generation !== before.generation + 1 || next.unknown !== assignments.unknown) return undefined;
  // The file then has another version.
  if (versionFor(next) !== versionFor(assignments)) return undefined;
  // A change line cannot remove these members.
  if (next.kubelet === null && assignments.kubelet !== null) return undefined;
  if (next.quiet === null && assignments.quiet !== null) return undefined;
  const changes = podListChanges(assignments.pods, next.pods);
  const pods = podsAfter(changes);
  const texts: Record<string, string> = {};
  if (next.cpus !== assignments.cpus) texts.cpus = cpusText(next.cpus);
  if (pods.length > 0) texts.pods = podsText(pods);
  if (next.kubelet && next.kubelet !== assignments.kubelet) texts.kubelet = kubeletText(next.kubelet);
  if (next.quiet && next.quiet !== assignments.quiet) texts.quiet = quietText(next.quiet);
  const { generation, bootId, writtenAt } = header;
  return textOfMembers({ line: 'change', generation, bootId, writtenAt }, texts, {
    ...(changes.removed.length > 0 && { released: changes.removed.map(({ uid }) => uid) }),
    ...(next.settings !== assignments.settings && { settings: encodeSettings(next.settings) }),
    ...(next.memory !== assignments.memory && { memory: next.memory }),
    ...(next.lastCpus !== assignments.lastCpus && namesBetween(assignments.lastCpus, next.lastCpus)),
  });
}

// Only the new names if the reader can derive the list from them; else the whole list.
function namesBetween(before: readonly NamedCpus[], after: readonly NamedCpus[]): object {
  const previous = new Set(before);
  const additions = after.filter((each) => !previous.has(each));
  const expected = rememberNames(before, additions);
  const isSame = expected.length === after.length && expected.every((each, i) => each === after[i]);
  return isSame ? { named: additions } : { lastCpus: after };
}
