// needs: folders
// NUMALIGN_STATE_DIR, as commands read it.
import { describe, expect, it } from 'vitest';
import { newFolder, numalign } from './numalign.js';

const withVariable = (folder: string, ...args: string[]) =>
  numalign(args, { env: { NUMALIGN_STATE_DIR: folder } });

describe('NUMALIGN_STATE_DIR', () => {
  it('is the folder of a command that is given none', async () => {
    const folder = newFolder();
    const { code, stdout } = await withVariable(folder, 'status', '--output', 'json');
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { stateDir: folder, exists: false }]);
  });

  it('gives way to --state-dir, and to a machine that is described', async () => {
    const folder = newFolder();
    const { stdout } = await withVariable('/no/such/folder', 'status', '--state-dir', folder);
    expect(stdout).toBe(`no state in ${folder}: nothing is granted\n`);
    const described = ['--cpus', '1', '--synthetic', 'numa:1 core:2 pu:1'];
    expect((await withVariable('/no/such/folder', 'plan', ...described)).code).toBe(0);
  });

  it('names a folder that can be used, or the command says why not', async () => {
    expect(await withVariable('here', 'status')).toMatchObject({
      code: 1,
      stderr: "numalign: NUMALIGN_STATE_DIR must be an absolute path, not 'here' [ERR_INVALID_OPTION]\n",
    });
  });

  it('is named by a unit, which has another environment', async () => {
    const { stdout } = await withVariable('/elsewhere', 'systemd-unit', '--cpus', '1', '--', 'true');
    expect(stdout).toContain(' run --cpus 1 --state-dir /elsewhere --name true ');
    expect(stdout).toContain(' release --dead --state-dir /elsewhere\n');
  });
});
