// needs: folders
// The state folder that the environment names.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stateJournal } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/machine/discovery.js';
import { openManager } from '../../lib/opening/open-manager.js';
import { defaultStateDir, stateDirVariable } from '../../lib/state/folder/chosen-folder.js';
import { thrownBy } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { asUser, canBeStranger } from '../support/strangers.js';

function environment(variables: NodeJS.ProcessEnv): void {
  const { env } = process;
  onTestFinished(() => {
    process.env = env;
  });
  process.env = { ...env, ...variables };
}

describe('NUMALIGN_STATE_DIR', () => {
  it('is the folder of managers, views and functions that are given none', async () => {
    const folder = makeStateDir();
    environment({ NUMALIGN_STATE_DIR: `${folder}/` });
    const manager = await openManager({ besideKubelet: true });
    expect([manager.stateDir, manager.scope]).toEqual([folder, 'private']);
    manager.close();
    const view = await openManager({ readOnly: true });
    expect(view.stateDir).toBe(folder);
    view.close();
    expect(stateJournal().file).toBe(join(folder, 'state.json'));
  });

  it('gives way to an option', async () => {
    environment({ NUMALIGN_STATE_DIR: '/no/such/folder' });
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir });
    expect(manager.stateDir).toBe(stateDir);
    manager.close();
  });

  it('is not the folder of a simulated machine, which has none', async () => {
    environment({ NUMALIGN_STATE_DIR: '/no/such/folder' });
    const manager = await openManager({ topology: await discover({ synthetic: 'numa:1 core:2 pu:1' }) });
    expect(manager.stateDir).toBe('');
    manager.close();
  });

  it('says something else to a program that was given a grant', () => {
    environment({ NUMALIGN_STATE_DIR: '/of/the/grant', NUMALIGN_GRANT: 'g', NUMALIGN_PRELOAD_PID: '' });
    expect(defaultStateDir()).toBe('/run/numalign');
  });

  it.each(['', undefined])('names no folder if it is %j', (path) => {
    environment({ NUMALIGN_STATE_DIR: path });
    expect(stateDirVariable()).toBeUndefined();
  });

  it('must be an absolute path', () => {
    environment({ NUMALIGN_STATE_DIR: 'here' });
    expect(thrownBy(stateDirVariable)).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: "NUMALIGN_STATE_DIR must be an absolute path, not 'here'",
    });
  });

  it.runIf(canBeStranger)('does not count in a program with the rights of another user', () => {
    const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    chmodSync(folder, 0o755);
    const node = join(folder, 'node');
    copyFileSync(process.execPath, node);
    const module = fileURLToPath(
      new URL('../../dist-test/lib/state/folder/chosen-folder.js', import.meta.url),
    );
    chmodSync(node, 0o4755);
    const script = `const { defaultStateDir } = await import(${JSON.stringify(module)});
      console.log(process.getuid(), process.geteuid(), defaultStateDir());`;
    const [command, ...args] = [...asUser(65534), node, '--input-type=module', '-e', script];
    const env = { ...process.env, NUMALIGN_STATE_DIR: '/elsewhere' };
    expect(execFileSync(command!, args, { env, cwd: '/', encoding: 'utf8' })).toBe('65534 0 /run/numalign\n');
  });
});
