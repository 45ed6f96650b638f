// What a pod's containers have or would have, as a table. Pure.
import type { ManagerView, PodContainer, PodSpec, Warning } from '../../index.js';
import { table } from '../terminal/table.js';
import type { Page } from '../terminal/terminal.js';
import { listed, printable } from '../terminal/text.js';
import { containerCpusText, devicesText, memoryText } from './resource-text.js';

/** A container, and why it has no exclusive CPUs; null: it has some. */
export interface ExplainedContainer extends PodContainer {
  readonly whyShared: string | null;
}

/** `containers` are those of the pod, in its order. */
export function explainedContainers(
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

/** A line for each reason: what a whole pod is holds for all of its containers. */
export function sharedLines(containers: readonly ExplainedContainer[]): string[] {
  const reasons = new Set(containers.flatMap(({ whyShared }) => whyShared ?? []));
  return [...reasons].map((why) => `no exclusive CPUs: ${printable(why)}`);
}

/** Columns of what no container has are left out. */
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
    listed(held),
    hint.nodes === null ? 'any' : listed(hint.nodes),
    ...(hasMemory ? [memoryText(memory.filter(({ bytes }) => bytes > 0))] : []),
    ...(hasDevices ? [devicesText(devices)] : []),
  ]);
  const columns = titles.map((title) => ({ title }));
  return table(columns, rows, page);
}

/** A line each. */
export function warningLines(warnings: readonly Warning[]): string[] {
  return warnings.map(({ message }) => `warning: ${printable(message)}`);
}

/**
 * Only its opener gets these warnings of what a manager found when it opened: the state itself is
 * another since.
 */
export function openingLines(warnings: readonly Warning[]): string[] {
  return warningLines(warnings.filter(({ code }) => code !== 'GRANT_FLAGGED' && code !== 'SETTING_UNMET'));
}

/** `pod gateway`: by its name, else by its uid. */
export function podTitle({
  name,
  uid,
}: {
  readonly name: string | undefined;
  readonly uid: string | undefined;
}): string {
  const known = name ?? uid;
  return known === undefined ? 'pod without a name' : `pod ${printable(known)}`;
}

/** Why a pod is on its NUMA nodes, where these were chosen jointly. */
export const choiceLines = (explanation: string | null): string[] =>
  explanation ? explanation.split('\n').map(printable) : [];
