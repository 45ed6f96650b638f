// needs: nothing
// The quieter of this machine, which is asked about states with quiet grants only. It reads.
import { beforeAll, expect, it } from 'vitest';
import { emptyAssignments } from '../../lib/account/assignments.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';
import { kernelFiles } from '../../lib/quiet/kernel/kernel-files.js';
import { kernelWork, readKernelSettings, workText } from '../../lib/quiet/kernel-work.js';
import { quietShortfall } from '../../lib/quiet/outcome.js';
import { quieterOf } from '../../lib/quiet/quieter-of.js';
import { quiet } from '../support/quiet.js';
import { podOf } from '../support/quiet-world.js';

const NONE = emptyAssignments(DEFAULT_SETTINGS);
const ONE = { ...NONE, pods: [podOf('one', 'a', CpuSet.of(0), quiet('0').request)] };

let topology: Topology;
beforeAll(async () => {
  topology = await discover();
});

it('has nothing to do for states without quiet grants', async () => {
  const quieter = quieterOf(() => {
    throw new Error('the topology is not needed');
  });
  expect(quieter.follow(NONE, { ...NONE, lastCpus: [] }, async () => {})).toBeUndefined();
  expect(await quieter.compare(NONE)).toEqual({ checked: 0, drifts: [] });
});

it('has nothing to do between two states with the same quiet grants', () => {
  expect(quieterOf(() => topology).follow(ONE, { ...ONE }, async () => {})).toBeUndefined();
});

it('follows the first quiet grant, and the end of the last one', async () => {
  const quieter = quieterOf(() => topology);
  const commits: unknown[] = [];
  const record = async (state: unknown) => void commits.push(state);
  const [begin, end] = [quieter.follow(NONE, ONE, record), quieter.follow(ONE, NONE, record)];
  expect((await begin)!.next.quiet!.settings.length).toBeGreaterThan(0);
  expect((await end)!.next).toBe(NONE);
  expect(commits).toEqual([]);
});

it('compares the settings of quiet grants with the kernel’s', async () => {
  const { checked } = await quieterOf(() => topology).compare(ONE);
  expect(checked).toBeGreaterThan(0);
});

it('says which work the kernel goes on doing on the CPUs of a grant', () => {
  const { unchanged } = quieterOf(() => topology).outcome(ONE, 'one');
  expect(unchanged).toEqual(kernelWork(readKernelSettings(kernelFiles()), CpuSet.of(0)).map(workText));
});

it('what a request requires is missing unless it is fully reached', () => {
  const yes = { reached: 'yes', reasons: [] } as const;
  const partly = { reached: 'partly', reasons: ['IRQ 24 stays'] } as const;
  const outcome = { parts: { interrupts: yes, idle: partly }, unchanged: [] };
  expect(quietShortfall(outcome, ['interrupts'])).toBeUndefined();
  expect(quietShortfall(outcome, ['interrupts', 'idle', 'packets'])).toMatchObject({
    code: 'ERR_QUIET',
    message: expect.stringContaining(
      'quiet idle, packets is required but not fully reached here: idle: IRQ 24 stays; packets',
    ),
    details: { value: ['idle', 'packets'], valid: ['interrupts'] },
  });
});
