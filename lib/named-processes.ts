// Processes of other programs, found by name.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { textOf } from './text-of.js';

export interface NamedProcess {
  readonly pid: number;
  readonly name: string;
}

/** Those that this process can see, one after another: there can be thousands to look at. `root`: where the machine's files are, for tests. */
export function* namedProcesses(names: readonly string[], root = '/'): Generator<NamedProcess> {
  let pids: string[];
  try {
    pids = readdirSync(join(root, '/proc'));
  } catch {
    return;
  }
  for (const pid of pids) {
    if (!/^\d+$/.test(pid)) continue;
    const name = textOf(join(root, '/proc', pid, 'comm'))?.trim();
    if (name !== undefined && names.includes(name)) yield { pid: Number(pid), name };
  }
}
