// needs: modules
// New uids, wherever they come from.
import type fs from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';

const UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
const OF_KERNEL = '2f3d1a4e-6b7c-4d8e-9f01-23456789abcd';

const { readFileSync } = vi.hoisted(() => ({ readFileSync: vi.fn() }));
vi.mock('node:fs', async (original) => ({ ...(await original<typeof fs>()), readFileSync }));
afterEach(() => readFileSync.mockReset());

/** Those that a new program makes, and how often it asks the kernel. */
async function newUids(count: number) {
  vi.resetModules();
  const { newUid } = await import('../../lib/base/text/new-uid.js');
  const uids = Array.from({ length: count }, newUid);
  return { uids, reads: readFileSync.mock.calls.length };
}

describe('new uids', () => {
  it('come from the kernel at first', async () => {
    readFileSync.mockReturnValue(`${OF_KERNEL}\n`);
    const { uids, reads } = await newUids(20);
    expect(reads).toBe(4);
    expect(readFileSync).toHaveBeenCalledWith('/proc/sys/kernel/random/uuid', 'utf8');
    expect(uids.filter((uid) => uid === OF_KERNEL)).toHaveLength(reads);
    expect(new Set(uids).size).toBe(17);
    for (const uid of uids) expect(uid).toMatch(UUID);
  });

  it.each([
    [
      'cannot be read',
      () => {
        throw new Error('EACCES');
      },
    ],
    ['is empty', () => ''],
    ['has something else', () => '00000000-0000-0000-0000-000000000000\n'],
  ])('are as random if the file of the kernel %s', async (_, content) => {
    readFileSync.mockImplementation(content);
    const { uids } = await newUids(10);
    expect(new Set(uids).size).toBe(10);
    for (const uid of uids) expect(uid).toMatch(UUID);
  });

  it('of this kernel differ', async () => {
    const real = await vi.importActual<typeof fs>('node:fs');
    readFileSync.mockImplementation(real.readFileSync);
    const { uids } = await newUids(8);
    expect(new Set(uids).size).toBe(8);
  });
});
