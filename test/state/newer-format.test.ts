// needs: process
// A state that a newer numalign wrote: it can be read, and not a byte of it changes.
import { createHash } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { sealLine } from '../../lib/state/format/sealed-json.js';
import { numalign } from '../../packages/cli/test/numalign.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

async function newer(change: (text: string) => string = (text) => text) {
  const topology = await discover({ synthetic: 'core:8 pu:1' });
  const stateDir = makeStateDir();
  const manager = await openManager({ topology, stateDir, reservedSystemCPUs: '0' });
  const grant = await manager.acquire({ cpu: 2, name: 'own' });
  const persistent = await manager.acquire({ cpu: 1, owner: 'persistent', name: 'lasting' });
  const file = join(stateDir, 'state.json');
  const text = readFileSync(file, 'utf8').replace(/"version":\d,/, '"version":99,"shape":{"new":true},');
  writeFileSync(file, change(text.replace(/,"checksum":.*$/gm, ',"seal":"of another kind"}')));
  return { topology, stateDir, manager, grant, persistent };
}

/** Everything in a folder, by name: size, time and bytes. */
function everything(folder: string): object {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [
        path,
        [statSync(path).mtimeMs, createHash('sha256').update(readFileSync(path)).digest('hex')],
      ]),
  );
}

const POD = { uid: 'pod', containers: [{ name: 'app', requests: { cpu: 1 }, limits: { cpu: 1 } }] };

describe('a state of a newer format', () => {
  it('can be opened and read', async () => {
    const { topology, stateDir, manager, grant } = await newer();
    const before = everything(stateDir);
    const other = await openManager({ topology, stateDir, reservedSystemCPUs: '0' });
    for (const each of [manager, other]) {
      expect(each.grants().map(({ name }) => name)).toEqual(['own', 'lasting']);
      expect(each.freeCpus().size).toBe(4);
      expect(String(each.settings().reservedSystemCPUs)).toBe('0');
      expect(each.pod(grant.uid).containers[0]!.cpus?.equals(grant.cpus)).toBe(true);
      expect(each.plan(POD).admitted).toBe(true);
    }
    expect((await errorOf(() => openManager({ topology, stateDir, reservedSystemCPUs: '1' }))).code).toBe(
      'ERR_CONFIG_CONFLICT',
    );
    expect(everything(stateDir)).toEqual(before);
  });

  it('is left alone to the last byte by everything that would write, with an error', async () => {
    const { stateDir, manager, grant, persistent } = await newer();
    const before = everything(stateDir);
    const writers: [string, (manager: Manager) => unknown][] = [
      ['acquire', (m) => m.acquire({ cpu: 1 })],
      ['acquire more than there is', (m) => m.acquire({ cpu: 100 })],
      ['admit', (m) => m.admit(POD, { owner: 'persistent' })],
      ['configure', (m) => m.configure({ reservedSystemCPUs: '1' })],
      ['release', (m) => m.release(persistent.uid)],
      ['release of the own grant', () => grant.release()],
    ];
    for (const [name, write] of writers) {
      expect([name, (await errorOf(() => write(manager))).code]).toEqual([name, 'ERR_STATE_VERSION']);
    }
    expect(everything(stateDir)).toEqual(before);
    expect(manager.grants()).toHaveLength(2);
  });

  it('is left alone by a manager that was open, even once it has grown by a line', async () => {
    const { stateDir, manager } = await newer((text) =>
      text.replace(/^.*$/gm, (line) => line && sealLine(line.replace(/,"seal":.*$/, '}')).trimEnd()),
    );
    expect(manager.grants()).toHaveLength(2);
    const next = { line: 'change', generation: manager.generation() + 1, bootId: 'boot', writtenAt: '' };
    appendFileSync(join(stateDir, 'state.json'), sealLine(JSON.stringify(next)));
    expect(manager.generation()).toBe(next.generation);
    const before = everything(stateDir);
    expect((await errorOf(() => manager.acquire({ cpu: 1 }))).code).toBe('ERR_STATE_VERSION');
    expect(everything(stateDir)).toEqual(before);
  });

  it('is refused if its known part cannot be read', async () => {
    const { topology, stateDir, manager } = await newer((text) => text.replace('"pods":', '"grants":'));
    const before = everything(stateDir);
    expect((await errorOf(() => openManager({ topology, stateDir }))).code).toBe('ERR_STATE_VERSION');
    expect((await errorOf(() => manager.acquire({ cpu: 1 }))).code).toBe('ERR_STATE_VERSION');
    expect(() => manager.grants()).toThrow(expect.objectContaining({ code: 'ERR_STATE_VERSION' }));
    expect(everything(stateDir)).toEqual(before);
  });

  it('is shown by numalign status, which says that nothing is granted', async () => {
    const stateDir = makeStateDir();
    await (await openManager({ stateDir })).acquire({ cpu: 1, owner: 'persistent', name: 'lasting' });
    const file = join(stateDir, 'state.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"version":\d,/, '"version":99,"shape":{},'));
    const { code, stdout } = await numalign(['status', '--state-dir', stateDir]);
    expect(code).toBe(0);
    expect(stdout).toContain('lasting');
    expect(stdout).toMatch(/Nothing is granted: .* format version 99/);
  });
});
