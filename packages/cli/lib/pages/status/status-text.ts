// The page of `numalign status`. Pure.
import { freeCpusText, freeText, processText, sharedText } from '@numalign/page/words';
import type { KeptFiles, StateStatus } from 'numalign/diagnostics';
import type { Page } from '../../terminal/terminal.js';
import { fitPage, labelRows, printable, shorten } from '../../terminal/text.js';
import { kubeletSection } from '../kubelet-text.js';
import { warningLines } from '../pod-text.js';
import { freeMemoryText, settingsRows } from '../settings-text.js';
import { cgroupLines, flagLines, quietGrantLines } from './grant-lines.js';
import { grantTable } from './grant-table.js';
import { archiveText, fileLines, lapsedText } from './kept-files-text.js';
import { attachedText, memberText } from './member-text.js';

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${line}`)];
}

/**
 * The whole page, with a line feed at its end. `agent`: the service that gives CPUs back; `whyMembers`:
 * why no grant gets more than `members`, and what root can do.
 */
export function statusText(
  view: StateStatus,
  { archives, quarantine }: KeptFiles,
  { agent, whyMembers }: { readonly agent: string | null; readonly whyMembers: string | undefined },
  page: Page,
): string {
  const { stateDir, scope, generation, damage, refusal, isOfEarlierBoot, memory, grants, lapsed } = view;
  const { warnings, settings, freeIsolated, sharedMembers, waiting, kubelet } = view;
  const attachments = sharedMembers.map((member) => attachedText(member, grants));
  const short = (text: string) => shorten(text, page.width - 2);
  const head = labelRows(
    [
      ['state:', `${stateDir} (${scope}), generation ${generation}`],
      ...settingsRows(settings),
      ['shared:', sharedText(view)],
      ['free:', freeText(view)],
      ...(settings.isolatedCPUs.isEmpty
        ? []
        : [['free isolated:', freeCpusText(view, freeIsolated)] as const]),
      ['free memory:', `${freeMemoryText(memory)} (not granted; may be in use)`],
      ['agent:', agent ?? 'none: CPUs of killed owners come back when numalign is used'],
    ],
    page.width,
  );
  const lines = [...head, ...warningLines(warnings), ''];
  if (damage !== null) {
    const repair = 'This page shows the readable part, which the next transaction writes.';
    lines.push(`The state file cannot be used: ${printable(damage)}.`, ...(refusal === null ? [repair] : []));
  }
  if (refusal !== null) lines.push(`Nothing is granted: ${printable(refusal.message)}.`);
  if (isOfEarlierBoot) {
    lines.push('The state is of an earlier boot: its grants are void.');
    if (lapsed.length > 0) lines.push(`Persistent ones among them, not granted again: ${lapsedText(lapsed)}`);
  } else if (grants.length === 0) lines.push('No grants.');
  else lines.push(...grantTable(grants, page));
  if (grants.some((grant) => !grant.alive)) lines.push('', 'dead: taken back at the next transaction');
  if (whyMembers !== undefined) lines.push('', `members: ${whyMembers}`);
  lines.push(
    ...section(...kubeletSection(kubelet)),
    ...section('flagged: kept until released', flagLines(grants)),
    ...section('not wholly quiet:', quietGrantLines(grants)),
    ...section('cgroups of grants, made when something is to run in them:', cgroupLines(grants)),
    ...section('attached to grants:', attachments.filter((text) => text !== undefined).map(short)),
    ...section(
      'shared members:',
      sharedMembers.filter((_, i) => attachments[i] === undefined).map((member) => short(memberText(member))),
    ),
    ...section(
      'waiting for CPUs, the next first:',
      waiting.map((waiter) => short(processText(waiter))),
    ),
    ...fileLines(
      'states of earlier boots, with the persistent grants that ended with them:',
      archives.map(archiveText),
    ),
    ...fileLines('put aside as damaged:', [...quarantine].reverse()),
  );
  return fitPage(`${lines.join('\n')}\n`, page);
}
