import { type Manager, NumalignError } from 'numalign';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { placementOf } from '../../lib/containers/container-placement.js';
import { Grants } from '../../lib/containers/grants.js';

const RETRIES_MS = 100_000;
const PLACEMENT = placementOf('a', false, { cpus: null, memory: [], devices: {} } as never);
const refusal = new NumalignError('ERR_STATE_CORRUPT', 'the state file was removed');
const persistent = { owner: { kind: 'persistent' }, alive: true };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function grantsOn(manager: { grantInfo: () => unknown; release: () => Promise<void> }) {
  const lines: string[] = [];
  const log = (level: string, message: string) => lines.push(`${level}: ${message}`);
  const options = { prefix: 'numalign', restoreAllocation: undefined, findManifest: undefined, log };
  return { grants: new Grants({ manager: manager as unknown as Manager, ...options }), lines };
}

it('A grant that a locked state keeps from release is released as soon as possible', async () => {
  const grantInfo = vi.fn().mockReturnValue(persistent);
  const release = vi.fn().mockRejectedValueOnce(refusal).mockResolvedValue(undefined);
  const { grants, lines } = grantsOn({ grantInfo, release });
  await grants.end(PLACEMENT);
  expect(lines).toEqual(['warn: grant a is not released yet: the state file was removed']);
  await vi.advanceTimersByTimeAsync(RETRIES_MS);
  expect(release.mock.calls).toEqual([['a'], ['a']]);
});

it('A state that cannot be read while a release waits is reported, and read again', async () => {
  const release = vi.fn().mockResolvedValue(undefined);
  const grantInfo = vi
    .fn()
    .mockReturnValueOnce({ owner: { kind: 'cgroup' }, alive: true })
    .mockImplementationOnce(() => {
      throw refusal;
    })
    .mockReturnValue(persistent);
  const { grants, lines } = grantsOn({ grantInfo, release });
  await grants.end(PLACEMENT);
  await vi.advanceTimersByTimeAsync(RETRIES_MS);
  expect(lines).toHaveLength(1);
  expect(release.mock.calls).toEqual([['a']]);
});

it('Nothing is given back after the close, even if a release waits for the state', async () => {
  const release = vi.fn().mockRejectedValue(refusal);
  const { grants } = grantsOn({ grantInfo: () => persistent, release });
  const end = grants.end(PLACEMENT);
  grants.close();
  await end;
  await vi.advanceTimersByTimeAsync(RETRIES_MS);
  expect(release).toHaveBeenCalledTimes(1);
});
