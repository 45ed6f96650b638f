// The page of `numalign status`, and the parts of it that other commands print. Pure.

import { cpusNamed } from '../../base/text/cpus-named.js';
import type {
  ArchivedState,
  GrantStatus,
  KeptFiles,
  LapsedGrant,
  MemberStatus,
  SettingsStatus,
  StateStatus,
} from '../../entries/diagnostics.js';
import type { BookedMemory, CpuSet, MemoryTable } from '../../index.js';
import { table } from '../terminal/table.js';
import type { Page } from '../terminal/terminal.js';
import { fitted, labelled, listed, printable, shorten } from '../terminal/text.js';
import { warningLines } from './pod-text.js';
import { besideText, cpusText, memoryText } from './resource-text.js';

const SHOWN_ID = 8;

/** The shortest length, from 8 up, at which all ids differ. */
export function shownIdLength(ids: readonly string[]): number {
  const longest = Math.max(SHOWN_ID, ...ids.map((id) => id.length));
  for (let length = SHOWN_ID; length < longest; length++) {
    if (new Set(ids.map((id) => id.slice(0, length))).size === ids.length) return length;
  }
  return longest;
}

function reservedMemoryText(reserved: BookedMemory): string {
  const blocks = Object.entries(reserved).flatMap(([node, types]) =>
    Object.entries(types).map(([type, bytes]) => ({ nodes: [Number(node)], type, bytes })),
  );
  return memoryText(blocks);
}

/** Free memory by NUMA node, of types that the machine has. */
function freeMemoryText(tables: readonly MemoryTable[]): string {
  const known = tables.filter(({ total }) => total > 0);
  return memoryText(known.map(({ node, type, free }) => ({ nodes: [node], type, bytes: free })));
}

/** The machine's settings, a row each. */
export function settingsRows({
  managesAll,
  managedCPUs: managed,
  reservedSystemCPUs: reserved,
  strictCPUReservation: strict,
  isolatedCPUs: isolated,
  isolatedByKernel,
  reservedMemory,
  cgroupRoot,
}: SettingsStatus): [label: string, text: string][] {
  const keptOut = strict ? ' (strictly: not shared)' : ' (shared, never exclusive)';
  return [
    ['managed:', managesAll ? `all (${managed})` : named(managed)],
    ['reserved:', `${named(reserved)}${reserved.isEmpty ? '' : keptOut}`],
    ['strict:', strict ? 'yes' : 'no'],
    ['isolated:', isolatedText(isolated, isolatedByKernel)],
    ['reserved memory:', reservedMemoryText(reservedMemory)],
    ['cgroups:', cgroupRoot === null ? 'none' : `below ${printable(cgroupRoot)}`],
  ];
}

/** Not `1`, which could be how many there are. */
export function named(cpus: CpuSet): string {
  return cpus.isEmpty ? 'none' : cpusNamed(cpus);
}

/** The shared pool, as far as it is known. */
export function sharedText({ refusal, sharedPool }: Pick<StateStatus, 'refusal' | 'sharedPool'>): string {
  return refusal === null ? named(sharedPool) : `at most ${named(sharedPool)}`;
}

/** CPUs that are free, where that is known. */
export function freeListed({ refusal }: Pick<StateStatus, 'refusal'>, cpus: CpuSet): string {
  return refusal === null ? named(cpus) : 'unknown';
}

/** The free CPUs; where nothing else is shared, not all of them can be granted. */
export function freeText(view: Pick<StateStatus, 'refusal' | 'free' | 'sharedPool'>): string {
  const { refusal, free, sharedPool } = view;
  if (refusal !== null || free.isEmpty || !sharedPool.isSubsetOf(free)) return freeListed(view, free);
  return `${named(free)} (${free.size === 1 ? 'it' : 'one of them'} stays shared)`;
}

function isolatedText(isolated: CpuSet, isByKernel: boolean): string {
  if (isByKernel) return `${named(isolated)} (what the kernel isolates)`;
  return named(isolated);
}

function ownerText({ owner: { kind, pid, command }, survivors }: GrantStatus): string {
  const [first] = survivors;
  if (first) {
    const more = survivors.length > 1 ? `, ${survivors.length - 1} more` : '';
    return printable(`pid ${pid} gone: ${first.pid} ${first.command}${more}`);
  }
  const parts = [
    kind === 'process' ? [] : [kind],
    pid === null ? [] : [`pid ${pid}`],
    command === null ? [] : [command],
  ];
  return printable(parts.flat().join(' '));
}

// 2026-01-02T03:04:05.678Z to the second.
export function since(time: string): string {
  return printable(time)
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z');
}

// A row for each container, where there is more to tell of them than of the pod.
function containerRows({ containers }: GrantStatus, isBeside: boolean): string[][] {
  if (containers.length === 1 && containers[0]!.held.isEmpty) return [];
  return containers.map(({ name, kind, cpus, held, memory, devices }, i) => [
    '',
    `${i === containers.length - 1 ? '└─' : '├─'} ${printable(name)}${kind === 'app' ? '' : ` (${kind})`}`,
    `${cpusText(cpus)}${held.isEmpty ? '' : `, held ${held}`}`,
    '',
    ...(isBeside ? [besideText(memory, devices)] : []),
    ...['', '', '', ''],
  ]);
}

export function grantTable(grants: readonly GrantStatus[], page: Page): string[] {
  const length = shownIdLength(grants.map((grant) => grant.uid));
  const isBeside = grants.some(({ memory, devices }) => besideText(memory, devices) !== '');
  const columns = [
    { title: 'ID' },
    { title: 'NAME' },
    { title: 'CPUS' },
    { title: 'NUMA' },
    ...(isBeside ? [{ title: 'MEMORY AND DEVICES' }] : []),
    { title: 'OWNER', flexible: true },
    { title: 'STATE' },
    { title: 'ENFORCEMENT' },
    { title: 'SINCE' },
  ];
  const rows = grants.flatMap((grant) => [
    [
      printable(grant.uid.slice(0, length)),
      grant.name === grant.uid ? '-' : printable(grant.name),
      `${cpusText(grant.cpus)}${grant.isIsolated ? ' (isolated)' : ''}`,
      grant.cpus.isEmpty ? '-' : listed(grant.numaNodes),
      ...(isBeside ? [besideText(grant.memory, grant.devices) || '-'] : []),
      ownerText(grant),
      `${grant.alive ? 'alive' : 'dead'}${grant.flags.length > 0 ? ', flagged' : ''}`,
      grant.enforcement,
      since(grant.admittedAt),
    ],
    ...containerRows(grant, isBeside),
  ]);
  return table(columns, rows, page);
}

function grantTitle({ uid, name }: GrantStatus, length: number): string {
  return name === uid ? uid.slice(0, length) : `${uid.slice(0, length)} ${name}`;
}

/** A line for each grant of which something does not hold any more. */
export function flagLines(grants: readonly GrantStatus[]): string[] {
  const length = shownIdLength(grants.map((grant) => grant.uid));
  return grants
    .filter(({ flags }) => flags.length > 0)
    .map((grant) =>
      printable(`${grantTitle(grant, length)}: ${grant.flags.map(({ message }) => message).join('; ')}`),
    );
}

/** A line for each cgroup of a grant. */
function cgroupLines(grants: readonly GrantStatus[]): string[] {
  const length = shownIdLength(grants.map((grant) => grant.uid));
  return grants.flatMap((grant) =>
    grant.cgroups.map(({ container, path, isMade }) => {
      const of =
        grant.containers.length === 1
          ? ''
          : container === null
            ? ', all containers'
            : `, container ${container}`;
      return printable(`${grantTitle(grant, length)}${of}: ${path}${isMade ? '' : ' (not made yet)'}`);
    }),
  );
}

function processText({ pid, command }: { pid: number | null; command: string }): string {
  return printable(`process ${pid ?? 'unknown'}${command === '' ? '' : ` (${command})`}`);
}

const memberText = (member: MemberStatus) =>
  member.kind === 'cgroup' ? printable(`cgroup ${member.path}`) : processText(member);

// A process on the exclusive CPUs of a grant, with which it is. Undefined of others, which are in
// the shared pool.
function attachedText(member: MemberStatus, grants: readonly GrantStatus[]): string | undefined {
  const grant = member.kind === 'process' ? grants.find(({ uid }) => uid === member.grant) : undefined;
  if (!grant || member.kind === 'cgroup') return undefined;
  const { container } = member;
  const cpus =
    container === null ? grant.cpus : grant.containers.find(({ name }) => name === container)?.cpus;
  if (!cpus || cpus.isEmpty) return undefined;
  return `${processText(member)}: ${printable(grant.name)}${container === null ? '' : `, container ${printable(container)}`}`;
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${line}`)];
}

function lapsedText(lapsed: readonly LapsedGrant[]): string {
  const texts = lapsed.map(({ uid, name, cpus, memory, devices }) => {
    const beside = besideText(memory, devices);
    return `${name === uid ? uid : `${name} (${uid})`}: ${cpusText(cpus)}${beside === '' ? '' : `, ${beside}`}`;
  });
  return printable(texts.join('; '));
}

// Of long ago, a number is enough.
const SHOWN_FILES = 3;

function fileLines(title: string, files: readonly string[]): string[] {
  if (files.length === 0) return [];
  const more = files.length - SHOWN_FILES;
  const shown = files.slice(0, SHOWN_FILES).map((file) => `  ${printable(file)}`);
  return ['', title, ...shown, ...(more > 0 ? [`  and ${more} more`] : [])];
}

function archiveText({ file, writtenAt, lapsed }: ArchivedState): string {
  const time = writtenAt === null ? 'not readable' : since(writtenAt);
  return `${file}, ${time}${lapsed.length === 0 ? '' : `: ${lapsedText(lapsed)}`}`;
}

/** The whole page, ending with a line feed. */
export function statusText(view: StateStatus, { archives, quarantine }: KeptFiles, page: Page): string {
  const { stateDir, scope, generation, damage, refusal, isOfEarlierBoot, memory, grants, lapsed } = view;
  const { warnings, settings, freeIsolated, sharedMembers, waiting } = view;
  const attached = sharedMembers.map((member) => attachedText(member, grants));
  const short = (text: string) => shorten(text, page.width - 2);
  const head = labelled(
    [
      ['state:', `${stateDir} (${scope}), generation ${generation}`],
      ...settingsRows(settings),
      ['shared:', sharedText(view)],
      ['free:', freeText(view)],
      ...(settings.isolatedCPUs.isEmpty ? [] : [['free isolated:', freeListed(view, freeIsolated)] as const]),
      ['free memory:', `${freeMemoryText(memory)} (not granted, whoever uses it)`],
    ],
    page.width,
  );
  const lines = [...head, ...warningLines(warnings), ''];
  if (damage !== null) {
    const repair = 'This is what can be told of it, and what the next transaction makes of it.';
    lines.push(`The state file cannot be used: ${printable(damage)}.`, ...(refusal === null ? [repair] : []));
  }
  if (refusal !== null) lines.push(`Nothing is granted: ${printable(refusal.message)}.`);
  if (isOfEarlierBoot) {
    lines.push('The state is of an earlier boot: its grants are void.');
    if (lapsed.length > 0) lines.push(`Persistent ones among them, not granted again: ${lapsedText(lapsed)}`);
  } else if (grants.length === 0) lines.push('No grants.');
  else lines.push(...grantTable(grants, page));
  if (grants.some((grant) => !grant.alive)) lines.push('', 'dead: taken back at the next transaction');
  lines.push(
    ...section('flagged: kept until released', flagLines(grants)),
    ...section('cgroups of grants, made when something is to run in them:', cgroupLines(grants)),
    ...section('attached to grants:', attached.filter((text) => text !== undefined).map(short)),
    ...section(
      'shared members:',
      sharedMembers.filter((_, i) => attached[i] === undefined).map((member) => short(memberText(member))),
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
  return fitted(`${lines.join('\n')}\n`, page);
}
