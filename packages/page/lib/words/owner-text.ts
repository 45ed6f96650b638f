// Processes and owners of grants in words. Pure.
import type { GrantStatus } from 'numalign/diagnostics';
import { printable } from 'numalign/tools';

export function processText({ pid, command }: { pid: number | null; command: string }): string {
  return printable(`process ${pid ?? 'unknown'}${command === '' ? '' : ` (${command})`}`);
}

/** The owner of a grant, or what keeps it after its end. */
export function ownerText({ owner: { kind, pid, command }, survivors }: GrantStatus): string {
  const [first] = survivors;
  if (first) {
    const more = survivors.length > 1 ? `, ${survivors.length - 1} more` : '';
    return printable(`pid ${pid} ended: ${first.pid} ${first.command}${more}`);
  }
  const parts = [
    kind === 'process' ? [] : [kind],
    pid === null ? [] : [`pid ${pid}`],
    command === null ? [] : [command],
  ];
  return printable(parts.flat().join(' '));
}
