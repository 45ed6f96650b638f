// needs: machine
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../lib/entries/diagnostics.js';
import { openManager } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

describe('diagnose', () => {
  it('is healthy if no finding is a problem', async () => {
    const { healthy, findings } = await diagnose({ stateDir: makeStateDir() });
    expect(findings.length).toBeGreaterThan(10);
    expect(healthy).toBe(findings.every(({ status }) => status !== 'problem'));
  });

  it('makes no folder', async () => {
    const stateDir = makeStateDir();
    await diagnose({ stateDir });
    expect(existsSync(stateDir)).toBe(false);
  });

  it('checks the cgroup on record, or a given one', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir, cgroupRoot: '/numalign-on-record', sharedMember: false });
    manager.close();
    const found = async (options = {}) => JSON.stringify((await diagnose({ stateDir, ...options })).findings);
    expect(await found()).toContain('/numalign-on-record');
    expect(await found({ cgroupRoot: '/numalign-given' })).not.toContain('/numalign-on-record');
  });

  it.each([
    [{ stateDir: 'relative' }, 'stateDir'],
    [{ cgroupRoot: 7 }, 'cgroupRoot'],
    [{ other: true }, 'other'],
  ])('refuses %j', async (options, option) => {
    const error = await errorOf(() => diagnose(options as never));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION' });
    expect((error as Error).message).toContain(option);
  });
});
