// What annotations ask of the kernel and of the runtime for a container with CPUs of its own.
import { describe, expect, it } from 'vitest';
import { containerRequest } from '../../lib/placement/container-request.js';
import { disturbances } from '../../lib/placement/quiet.js';
import { containerOf, podOf } from '../support/nri-objects.js';

const prefixed = (keys: Record<string, string>) =>
  Object.fromEntries(Object.entries(keys).map(([key, value]) => [`numalign.io/${key}`, value]));
const ask = (keys: Record<string, string>, cpus = 2) =>
  containerRequest(
    'numalign',
    podOf({ annotations: prefixed(keys) }),
    containerOf({ cpus, memory: 2 ** 30 }),
  );

describe('quiet', () => {
  it.each([
    ['all', { interrupts: true, workqueues: true, packets: true, idle: true, frequency: true }],
    ['interrupts,idle=20', { interrupts: true, idle: { maxLatency: 20 } }],
    ['cache=25%, packets', { cache: { percent: 25 }, packets: true }],
    ['all,cache=4', expect.objectContaining({ frequency: true, cache: { ways: 4 } })],
  ])('%j asks for these parts', (quiet, parts) => {
    expect(ask({ quiet }).quiet).toEqual({ quiet: parts, required: [] });
  });

  it('may be required, and may leave CPUs to kernel work', () => {
    const keys = { quiet: 'interrupts,packets', 'require-quiet': 'interrupts', housekeeping: '1' };
    expect(ask(keys).quiet).toEqual({
      ...{ quiet: { interrupts: true, packets: true, housekeeping: 1 }, required: ['interrupts'] },
    });
  });

  it('of a pod is not asked of a container without CPUs of its own', () => {
    expect(ask({ quiet: 'all', housekeeping: '1' }, 1.5)).not.toHaveProperty('quiet');
  });

  it.each([
    [{ quiet: 'noise' }, /quiet is "noise", not parts such as/],
    [{ quiet: 'cache' }, /quiet is "cache"/],
    [{ quiet: 'frequency=3' }, /quiet is/],
    [{ quiet: 'idle=20%' }, /quiet is/],
    [{ quiet: 'cache=0' }, /quiet is/],
    [{ quiet: 'idle', 'require-quiet': 'packets' }, /require-quiet is "packets", not parts that/],
    [{ 'require-quiet': 'idle' }, /require-quiet is "idle", not left out without numalign.io\/quiet/],
    [{ housekeeping: '1' }, /housekeeping is "1", not left out/],
    [{ quiet: 'all', housekeeping: 'one' }, /housekeeping is "one", not a number of CPUs from 1 on/],
    [{ quiet: 'all', housekeeping: '2' }, /housekeeping is "2", not fewer than the 2 CPUs/],
    [{ quiet: 'cache=2', 'rdt-class': 'gold' }, /rdt-class is "gold", not left out beside cache/],
    [{ 'rdt-class': '' }, /rdt-class is "", not the name of a class/],
    [{ 'blockio-class': 'a b' }, /blockio-class is "a b"/],
  ])('is refused as %j', (keys, message) => {
    expect(() => ask(keys)).toThrow(message);
    expect(() => ask(keys)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ANNOTATION' }));
  });
});

it('what disturbs quiet CPUs is said in part', () => {
  const reasons = ['a', 'b', 'c', 'd', 'e'];
  const parts = {
    interrupts: { reached: 'partly', reasons },
    idle: { reached: 'no', reasons: ['hidden'] },
    packets: { reached: 'yes', reasons: [] },
  } as const;
  expect(disturbances({ parts, unchanged: ['tick'] })).toEqual([
    'interrupts is reached partly: a; b; c; and 2 more',
    'idle is reached not at all: hidden',
  ]);
  expect(disturbances(null)).toHaveLength(1);
});

it('classes of the runtime are asked for by name, also in the shared pool', () => {
  expect(ask({ 'rdt-class': 'gold', 'blockio-class': 'slow' }, 1.5).classes).toEqual({
    ...{ rdt: 'gold', blockio: 'slow' },
  });
});
