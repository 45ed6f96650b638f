// needs: agents
// A state folder that containers share, each with a path and process ids of its own, and folders
// that they do not share: whose lock is it?
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Agent } from '../support/agent.js';
import { canUnshare } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';

const MACHINE = 'core:4 pu:1';

/** A process in namespaces of its own, which sees `stateDir` at `path` only. */
function contained(stateDir: string, path: string): Agent {
  for (const folder of [stateDir, path]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const script = 'mount --bind "$0" "$1" && shift && exec "$@"';
  return new Agent(['unshare', '-pmf', '--mount-proc', '--kill-child', 'sh', '-c', script, stateDir, path]);
}

/** Stops what runs in the container. */
function stop({ process: { pid } }: Agent): void {
  const child = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
  execFileSync('kill', ['-STOP', child]);
}

function removeOwners(stateDir: string): void {
  for (const name of readdirSync(join(stateDir, 'owners'))) rmSync(join(stateDir, 'owners', name));
}

describe.runIf(canUnshare)('a folder that containers share under different paths', () => {
  it('keeps the CPUs of a stopped owner in another one though its file was removed', async () => {
    const stateDir = makeStateDir();
    const path = join(dirname(stateDir), 'inside');
    const owner = contained(stateDir, path);
    await owner.tell('open', { stateDir: path, simulate: MACHINE });
    await owner.tell('acquire', { cpu: 3 });
    stop(owner);
    removeOwners(stateDir);
    const next = new Agent();
    await next.tell('open', { stateDir, simulate: MACHINE });
    expect((await next.ask('acquire', { cpu: 1 })).error?.code).toBe('ERR_INSUFFICIENT_CPUS');
  });
});

describe.runIf(canUnshare)('folders that containers have under the same path', () => {
  it('on one file system do not block each other', async () => {
    const [one, another] = [makeStateDir(), makeStateDir()];
    const path = join(dirname(one), 'inside/state');
    const owner = contained(dirname(one), dirname(path));
    await owner.tell('open', { stateDir: path, simulate: MACHINE });
    await owner.tell('acquire', { cpu: 3 });
    const other = contained(dirname(another), dirname(path));
    await other.tell('open', { stateDir: path, simulate: MACHINE });
    expect((await other.tell('acquire', { cpu: 3 })).cpus).toBe('0-2');
  });
});
