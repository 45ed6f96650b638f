// The containers of a pod as a table, with explanations. Pure.
import { containerCpusText, devicesText, memoryText } from '@numalign/page/words';
import type { ManagerView, PodContainer, PodSpec, Warning } from 'numalign';
import { table } from '../terminal/table.js';
import type { Page } from '../terminal/terminal.js';
import { listText, printable } from '../terminal/text.js';

/** A container, and why it has no exclusive CPUs; null if it has some. */
export interface ExplainedContainer extends PodContainer {
  readonly whyShared: string | null;
}

/** Adds the reasons to the containers of the pod, which are in its order. */
export function explainContainers(
  manager: ManagerView,
  pod: PodSpec,
  containers: readonly PodContainer[],
): ExplainedContainer[] {
  const reasons = manager.whyShared(pod);
  return containers.map((container, i) => ({
    ...container,
    whyShared: container.cpus === null ? (reasons[i] ?? 'it was admitted without them') : null,
  }));
}

/** A line for each reason, once: a reason of the whole pod is the same for all containers. */
export function sharedLines(containers: readonly ExplainedContainer[]): string[] {
  const reasons = new Set(containers.flatMap(({ whyShared }) => whyShared ?? []));
  return [...reasons].map((why) => `no exclusive CPUs: ${printable(why)}`);
}

/** A table of containers. Columns that would be empty are left out. */
export function podTable(containers: readonly PodContainer[], page: Page): string[] {
  const hasMemory = containers.some(({ memory }) => memory.length > 0);
  const hasDevices = containers.some(({ devices }) => Object.keys(devices).length > 0);
  const titles = ['CONTAINER', 'KIND', 'CPUS', 'HELD', 'NUMA'];
  if (hasMemory) titles.push('MEMORY');
  if (hasDevices) titles.push('DEVICES');
  const rows = containers.map(({ name, kind, cpus, mixed, isolation, held, hint, memory, devices }) => [
    printable(name),
    kind,
    containerCpusText({ cpus, mixed, isolation }),
    listText(held),
    hint.nodes === null ? 'any' : listText(hint.nodes),
    ...(hasMemory ? [memoryText(memory.filter(({ bytes }) => bytes > 0))] : []),
    ...(hasDevices ? [devicesText(devices)] : []),
  ]);
  const columns = titles.map((title) => ({ title }));
  return table(columns, rows, page);
}

/** A line for each warning. */
export function warningLines(warnings: readonly Warning[]): string[] {
  return warnings.map(({ message }) => `warning: ${printable(message)}`);
}

/** The warnings of an opening manager that a later look at the state does not show. */
export function openingLines(warnings: readonly Warning[]): string[] {
  return warningLines(warnings.filter(({ code }) => code !== 'GRANT_FLAGGED' && code !== 'SETTING_UNMET'));
}

/** `pod gateway`, by its name or else by its uid. */
export function podTitle({
  name,
  uid,
}: {
  readonly name: string | undefined;
  readonly uid: string | undefined;
}): string {
  const title = name ?? uid;
  return title === undefined ? 'pod without a name' : `pod ${printable(title)}`;
}

/** Why a pod is on its NUMA nodes, with the placement `joint`. */
export const choiceLines = (explanation: string | null): string[] =>
  explanation ? explanation.split('\n').map(printable) : [];
