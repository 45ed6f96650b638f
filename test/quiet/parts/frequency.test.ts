// needs: nothing
// Virtual machines have no cpufreq: the files follow the kernel's admin guide.
import { beforeAll, describe, expect, it } from 'vitest';
import { discover, type Topology } from '../../../lib/entries/topology.js';
import { frequency } from '../../../lib/quiet/parts/frequency.js';
import { kernelTree, type Rule } from '../../support/kernel-tree.js';
import { demandOf, quiet, restore, write } from '../../support/quiet.js';

const folder = (policy: number) => `/sys/devices/system/cpu/cpufreq/policy${policy}`;

const POLICY = {
  scaling_governor: 'powersave',
  scaling_available_governors: 'performance powersave ',
  energy_performance_preference: 'balance_performance',
  energy_performance_available_preferences: 'default performance balance_performance power ',
  scaling_min_freq: '800000',
  scaling_max_freq: '3600000',
};
const policy = (number: number, cpus: string, files: Record<string, string> = POLICY) =>
  Object.fromEntries(
    Object.entries({ affected_cpus: cpus, ...files }).map(([file, text]) => [
      `${folder(number)}/${file}`,
      text,
    ]),
  );

// intel_pstate with hardware-managed states: the governor `performance` holds the preference, and
// refuses others.
const RULES: Record<string, Rule> = {
  'policy2/scaling_governor': (value, texts) => {
    if (!['performance', 'powersave'].includes(value)) return { refusal: 'EINVAL' };
    if (value === 'performance') texts.set(`${folder(2)}/energy_performance_preference`, value);
    return { text: value };
  },
  'policy2/energy_performance_preference': (value, texts) => {
    const governor = texts.get(`${folder(2)}/scaling_governor`);
    if (governor === 'performance' && value !== 'performance') return { refusal: 'EBUSY' };
    return { text: value };
  },
  'policy2/scaling_min_freq': (value, texts) =>
    Number(value) > Number(texts.get(`${folder(2)}/scaling_max_freq`))
      ? { refusal: 'EINVAL' }
      : { text: value },
};

let machine: Topology;
beforeAll(async () => {
  machine = await discover({ synthetic: 'numa:1 core:4 pu:1' });
});

const demand = (cpus = '2') => demandOf(machine, quiet(cpus));
const tree = () =>
  kernelTree({ ...policy(0, '0 1'), ...policy(2, '2 3'), [`${folder(0)}/../boost`]: '1' }, RULES);
const settingsOf = (files = tree(), cpus = '2') => [...frequency.settings(files, demand(cpus), [])];

describe('the frequency of quiet CPUs', () => {
  it('is the highest all the time, by governor, preference and minimum, and is restored', async () => {
    const files = tree();
    const before = new Map(files.texts);
    const changes = await write(settingsOf(files), demand());
    const now = (file: string) => files.texts.get(`${folder(2)}/${file}`);
    expect(now('scaling_governor')).toBe('performance');
    expect(now('energy_performance_preference')).toBe('performance');
    expect(now('scaling_min_freq')).toBe('3600000');
    expect(files.texts.get(`${folder(0)}/scaling_governor`)).toBe('powersave');
    await restore(changes);
    expect(files.texts).toEqual(before);
  });

  it('is that of the other CPUs of their policy, too', () => {
    expect(settingsOf().map(({ title }) => title)).toEqual([
      'energy_performance_preference of CPUs 2-3',
      'scaling_governor of CPUs 2-3',
      'scaling_min_freq of CPUs 2-3',
    ]);
  });

  it('stays unchanged if it is the highest', async () => {
    const fast = { ...POLICY, scaling_governor: 'performance', scaling_min_freq: '3600000' };
    const files = kernelTree(policy(2, '2', { ...fast, energy_performance_preference: 'performance' }));
    expect(await write(settingsOf(files), demand())).toEqual([]);
  });

  it('depends on the governor alone if the driver has no preferences', () => {
    const {
      energy_performance_preference: _,
      energy_performance_available_preferences: __,
      ...rest
    } = POLICY;
    const files = kernelTree(policy(2, '2', rest));
    expect(settingsOf(files).map(({ path }) => path)).toEqual([
      `${folder(2)}/scaling_governor`,
      `${folder(2)}/scaling_min_freq`,
    ]);
  });

  it('is known of policies on record, too, whose values return without a demand', () => {
    const files = tree();
    const path = `${folder(2)}/scaling_governor`;
    const settings = [...frequency.settings(files, demand('0'), [path])];
    const governor = settings.find((setting) => setting.path === path)!;
    expect(governor.target('powersave', demand('0'))).toBe('powersave');
  });

  it('disturbs the quiet CPUs of a policy as long as a value is not the fastest', () => {
    const [, governor, least] = settingsOf();
    expect(String(governor!.disturbs('powersave', demand()))).toBe('2');
    expect(String(governor!.disturbs('performance', demand()))).toBe('');
    expect(String(least!.disturbs('800000', demand()))).toBe('2');
    expect(String(least!.disturbs('3600000', demand()))).toBe('');
  });
});

describe('an obstacle to a quiet frequency', () => {
  it('is a machine without cpufreq', () => {
    const [obstacle, ...more] = frequency.obstacles(kernelTree({}), demand('1-2'));
    expect(obstacle).toMatch(/frequency of CPUs 1-2 \(no cpufreq\).*host of this virtual machine/);
    expect(more).toEqual([]);
  });

  it('is a CPU without a policy', () => {
    expect(frequency.obstacles(kernelTree(policy(0, '0 1')), demand('1-2'))).toEqual([
      expect.stringMatching(/frequency of CPU 2 /),
    ]);
  });

  it('is a policy without the governor `performance`', () => {
    const files = kernelTree(policy(2, '2', { ...POLICY, scaling_available_governors: 'powersave' }));
    expect(frequency.obstacles(files, demand())).toEqual([
      expect.stringMatching(/for CPU 2: .*cpufreq_performance/),
    ]);
  });

  it('does not exist if everything can be set', () => {
    expect(frequency.obstacles(tree(), demand())).toEqual([]);
  });
});

describe('a policy whose CPUs are all offline, with unreadable files', () => {
  const offline = (path: string) =>
    Object.fromEntries(Object.keys(policy(3, '3')).map((file) => [file, path]));
  const files = () => kernelTree({ ...policy(2, '2'), ...policy(3, '3') }, RULES, offline('EBUSY'));
  const settings = (recorded: string[] = []) => [
    ...frequency.settings(files(), demandOf(machine, quiet('2-3')), recorded),
  ];

  it('does not keep other policies from being set', () => {
    expect(settings().map(({ path }) => path.split('/').at(-2))).toEqual(Array(3).fill('policy2'));
  });

  it('has no file elsewhere, whatever is on record', () => {
    const paths = ['../../../../../../etc/hostname', 'boost', ''].map((path) => `${folder(3)}/${path}`);
    const found = frequency.settings(kernelTree(policy(3, '')), demandOf(machine, quiet('')), [
      ...paths,
      `${folder(3)}/scaling_governor`,
    ]);
    expect([...found].map(({ path }) => path)).toEqual([`${folder(3)}/scaling_governor`]);
  });

  it('keeps its record', () => {
    const path = `${folder(3)}/scaling_governor`;
    const setting = settings([path]).find((each) => each.path === path)!;
    expect(() => setting.read()).toThrow('EBUSY');
  });
});
