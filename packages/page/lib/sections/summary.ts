// How things stand with the state: its pools, what is wrong with it, and the requests that wait. Pure.
import type { StateStatus } from 'numalign/diagnostics';
import { USES } from '../picture/look.js';
import { processText } from '../words/owner-text.js';
import { cpusOrNone, freeCpusText, freeText, sharedText } from '../words/pools-text.js';
import { memoryText } from '../words/resource-text.js';
import { countText } from '../words/text.js';
import { element, escaped, swatch, textElement } from './html.js';

type Use = keyof typeof USES;
type Fact = readonly [title: string, text: string, use?: Use];

export function summarySection(status: StateStatus): string {
  const facts = factsOf(status).map(([title, text, use]) => {
    const mark = use === undefined ? '' : swatch(USES[use].className);
    return element('div', {}, element('dt', {}, mark + escaped(title)) + textElement('dd', text));
  });
  return element('dl', {}, facts.join(''));
}

function factsOf(status: StateStatus): Fact[] {
  const { stateDir, scope, generation, settings, memory, grants, sharedMembers } = status;
  const {
    reservedSystemCPUs: reserved,
    strictCPUReservation,
    isolatedCPUs,
    managesAll,
    managedCPUs,
  } = settings;
  const tables = memory.filter(({ total }) => total > 0);
  const free = tables.map(({ node, type, free: bytes }) => ({ nodes: [node], type, bytes }));
  const isStrict = strictCPUReservation && !reserved.isEmpty;
  return [
    ['Folder', stateDir === '' ? 'none, in memory' : `${stateDir} (${scope})`],
    ['Generation', `${generation}`],
    ['Grants', `${grants.length}`],
    ['Shared pool', `${sharedText(status)}, for ${countText(sharedMembers.length, 'member')}`],
    ['Free', freeText(status), 'free'],
    ['Reserved', `${cpusOrNone(reserved)}${isStrict ? ' (not shared)' : ''}`, 'reserved'],
    ...(isolatedCPUs.isEmpty
      ? []
      : [['Isolated, free', freeCpusText(status, status.freeIsolated), 'isolated'] as const]),
    ...(managesAll ? [] : [['Managed', cpusOrNone(managedCPUs)] as const]),
    ['Free memory', memoryText(free)],
  ];
}

/** What is wrong, or differs from the settings; empty if all is well. */
export function noticeSection(status: StateStatus): string {
  const { exists, isOfEarlierBoot, refusal, damage, warnings, stateDir } = status;
  const notices = [
    ...(exists || stateDir === '' ? [] : ['There is no state yet: nothing is granted.']),
    ...(isOfEarlierBoot ? ['The state is of an earlier boot: its grants are void.'] : []),
    ...(refusal === null ? [] : [`Nothing is granted: ${refusal.message} [${refusal.code}]`]),
    ...(damage === null ? [] : [damage]),
    ...warnings.map(({ message }) => message),
  ];
  return notices.map((text) => textElement('p', text, { class: 'notice' })).join('');
}

export function waitingSection({ waiting }: StateStatus): string {
  if (waiting.length === 0) return element('p', {}, 'None.');
  const items = waiting.map((waiter) => textElement('li', processText(waiter)));
  return element('ol', {}, items.join(''));
}
