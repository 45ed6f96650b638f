// needs: nothing
import { beforeAll, describe, expect, it } from 'vitest';
import { discover, type Topology } from '../../../lib/entries/topology.js';
import type { PartDemand } from '../../../lib/quiet/kernel/setting.js';
import { idle } from '../../../lib/quiet/parts/idle.js';
import { kernelTree } from '../../support/kernel-tree.js';
import { demandOf, quiet, restore, write } from '../../support/quiet.js';

const CPUS = '/sys/devices/system/cpu';
const file = (cpu: number) => `${CPUS}/cpu${cpu}/power/pm_qos_resume_latency_us`;
const state = (number: number, latency: number, disable = '0') => ({
  [`${CPUS}/cpu2/cpuidle/state${number}/latency`]: String(latency),
  [`${CPUS}/cpu2/cpuidle/state${number}/disable`]: disable,
});

let machine: Topology;
beforeAll(async () => {
  machine = await discover({ synthetic: 'numa:1 core:4 pu:1' });
});

const demand = (maxLatency = 10, cpus = '2') => demandOf(machine, quiet(cpus, { idle: { maxLatency } }));
const tree = (states = {}) =>
  kernelTree({ [file(1)]: '0', [file(2)]: '0', [file(3)]: '0', ...state(0, 0), ...state(1, 2), ...states });
const settingOf = (files = tree()) => [...idle.settings(files, demand(), [])][0]!;

describe('the allowed wake-up time of idle states', () => {
  it('is limited on quiet CPUs only, and restored', async () => {
    const files = tree();
    const before = new Map(files.texts);
    const changes = await write([...idle.settings(files, demand(10, '1-2'), [])], demand(10, '1-2'));
    expect([1, 2, 3].map((cpu) => files.texts.get(file(cpu)))).toEqual(['10', '10', '0']);
    await restore(changes);
    expect(files.texts).toEqual(before);
  });

  it.each([
    ['0', 10, '10'],
    ['50', 10, '10'],
    ['5', 10, '5'],
    ['n/a', 10, 'n/a'],
    ['5', 0, 'n/a'],
    ['0', 0.5, 'n/a'],
    ['0', 2.9, '2'],
    ['0', 2 ** 31, '2147483646'],
  ])('is the lower of the former value, %s, and %d µs: %s', (base, maxLatency, target) => {
    expect(settingOf().target(base, demand(maxLatency))).toBe(target);
  });

  it('is the lowest of several requests for one CPU', () => {
    const several: PartDemand = demandOf(
      machine,
      quiet('2', { idle: { maxLatency: 30 } }),
      quiet('2-3', { idle: { maxLatency: 20 } }),
      quiet('3', { idle: { maxLatency: 1 } }),
    );
    expect(settingOf().target('0', several)).toBe('20');
  });

  it('is known of CPUs of any number', () => {
    const files = kernelTree({ [file(2)]: '0', [file(123)]: '0' });
    const paths = [...idle.settings(files, demand(), [file(123)])].map(({ path }) => path);
    expect(paths).toEqual([file(2), file(123)]);
  });

  it('is known of CPUs on record, too, as long as they are there', () => {
    const paths = [...idle.settings(tree(), demand(), [file(3), file(9)])].map(({ path }) => path);
    expect(paths).toEqual([file(2), file(3)]);
  });
});

describe('idle states disturb a CPU', () => {
  const disturbs = (value: string, states = {}, maxLatency = 10) =>
    String(settingOf(tree(states)).disturbs(value, demand(maxLatency)));

  it('if a state deeper than requested is still allowed', () => {
    expect(disturbs('0', state(2, 100))).toBe('2');
    expect(disturbs('100', state(2, 100))).toBe('2');
  });

  it('no more once the value excludes the deeper ones', () => {
    expect(disturbs('99', state(2, 100))).toBe('');
    expect(disturbs('10', state(2, 100))).toBe('');
    expect(disturbs('n/a', state(2, 100), 0)).toBe('');
  });

  it('not by a state that is exactly as deep as requested', () => {
    expect(disturbs('0', state(2, 10))).toBe('');
  });

  it('not by a state that is disabled, by the user (1) or by its driver (2)', () => {
    expect(disturbs('0', state(2, 100, '1'))).toBe('');
    expect(disturbs('0', state(2, 100, '2'))).toBe('');
  });

  it('not if it does not sleep at all', () => {
    expect(String(settingOf(kernelTree({ [file(2)]: '0' })).disturbs('0', demand()))).toBe('');
  });
});

describe('an obstacle to quiet idle states', () => {
  it('is a kernel without limits, if a CPU sleeps more deeply than requested', () => {
    const files = kernelTree({ ...state(1, 2), ...state(2, 100) });
    expect(idle.obstacles(files, demand())).toEqual([
      expect.stringMatching(/of CPU 2: write 1 to `disable`/),
    ]);
    expect(idle.obstacles(files, demand(100))).toEqual([]);
  });

  it('does not exist if the kernel has limits', () => {
    expect(idle.obstacles(tree(state(2, 100)), demand())).toEqual([]);
  });
});
