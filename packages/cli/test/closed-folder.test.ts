// needs: machine
// A state folder that is closed to the user of the command.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { asUser, canBeStranger, forStrangers } from '../../../test/support/strangers.js';
import { newFolder, numalign } from './numalign.js';

describe.runIf(canBeStranger)('numalign run below a folder that is closed to its user', () => {
  it('suggests another state folder after the error', async () => {
    const { code, stderr } = await numalign(
      ['run', '--cpus', '1', '--state-dir', join(newFolder(), 'state'), '--', 'true'],
      { program: ['env', ...asUser(4242), process.execPath, forStrangers('packages/cli/dist/main.cjs')] },
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^numalign: .*cannot be used: .*permission denied.* \[ERR_STATE_FOLDER\]\nnumalign: use --state-dir DIR, /,
    );
  });
});
