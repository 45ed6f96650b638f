// needs: nothing
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { discover, type Topology } from '../../../lib/entries/topology.js';
import { CpuSet } from '../../../lib/machine/cpu-set.js';
import { housekeepingCpus } from '../../../lib/machine/online-cpus.js';
import { HEX, LIST, MaskSetting } from '../../../lib/quiet/kernel/mask-setting.js';
import type { Setting } from '../../../lib/quiet/kernel/setting.js';
import { idle } from '../../../lib/quiet/parts/idle.js';
import { irqbalanceSettings } from '../../../lib/quiet/parts/irqbalance.js';
import { kernelTree } from '../../support/kernel-tree.js';
import { demandOf, quiet } from '../../support/quiet.js';

const PATH = '/mask';
const setting = (text = HEX) => new MaskSetting(kernelTree({ [PATH]: '0' }), PATH, 'a mask', text);

let machine: Topology;
beforeAll(async () => {
  // CPUs 0-3 on node 0, 4-7 on node 1.
  machine = await discover({ synthetic: 'package:2 numa:1 core:4 pu:1' });
});

const left = (base: string, ...cpus: string[]) =>
  setting(LIST).target(base, demandOf(machine, ...cpus.map((list) => quiet(list))));

describe('a mask of CPUs without the quiet ones', () => {
  it('keeps the others', () => {
    expect(left('0-7', '2')).toBe('0-1,3-7');
    expect(left('1-2', '2', '5')).toBe('1');
  });

  it('is unchanged if none of its CPUs is quiet', () => {
    expect(left('0-1', '2')).toBe('0-1');
    expect(left('', '2')).toBe('');
  });

  it('becomes the other CPUs of its NUMA nodes if all of its CPUs are quiet', () => {
    expect(left('5', '5')).toBe('4,6-7');
    expect(left('3-4', '3', '4')).toBe('0-2,5-7');
  });

  it('becomes the CPUs of other NUMA nodes if its own have none left', () => {
    expect(left('5', '4-7')).toBe('0-3');
  });

  it('is never one of offline CPUs alone, which the kernel refuses', () => {
    expect(left('5,64', '5')).toBe('4,6-7');
    expect(left('5,7,64', '5')).toBe('7,64');
  });

  it('is unchanged if every CPU is quiet, since there is nowhere to go', () => {
    expect(left('0-7', '0-7')).toBe('0-7');
  });

  it('lists the quiet CPUs that a value still has', () => {
    const demand = demandOf(machine, quiet('2-3'), quiet('6'));
    expect(String(setting(LIST).disturbs('0-2,6', demand))).toBe('2,6');
    expect(String(setting(HEX).disturbs('f0', demand))).toBe('6');
  });

  it('is read in the written form, whatever the kernel’s leading zeros', () => {
    const files = kernelTree({ [PATH]: '00000000,000000ff\n' });
    expect(new MaskSetting(files, PATH, 'a mask', HEX).read()).toBe('ff');
    files.texts.set(PATH, '1,0,2');
    expect(new MaskSetting(files, PATH, 'a mask', LIST).read()).toBe('0-2');
  });

  it('is missing if its file is missing or has other content', () => {
    const files = kernelTree({ [PATH]: 'none' });
    expect(new MaskSetting(files, PATH, 'a mask', HEX).read()).toBeUndefined();
    expect(new MaskSetting(files, PATH, 'a mask', LIST).read()).toBeUndefined();
    expect(new MaskSetting(files, '/missing', 'a mask', LIST).read()).toBeUndefined();
  });
});

describe('housekeeping CPUs', () => {
  it('are none if every CPU is quiet', () => {
    expect(String(housekeepingCpus(machine, CpuSet.of(1), CpuSet.parse('0-7')))).toBe('');
  });
});

// Grants of disjoint CPUs, not all of them online.
const grants = fc
  .array(fc.nat(4), { minLength: 10, maxLength: 10 })
  .map((owners) => {
    const cpusOf = (owner: number) => owners.flatMap((of, cpu) => (of === owner ? [cpu] : []));
    return [1, 2, 3].map(cpusOf).filter((cpus) => cpus.length > 0);
  })
  .chain((all) =>
    fc.tuple(...all.map((cpus) => fc.record({ cpus: fc.constant(cpus), maxLatency: fc.nat(50) }))),
  )
  .map((all) => all.map(({ cpus, maxLatency }) => quiet(CpuSet.from(cpus), { idle: { maxLatency } })));
const masks = fc.uniqueArray(fc.nat(9)).map((ids) => CpuSet.from(ids));

const SOCKET = { '/run/irqbalance/irqbalance1.sock': '', '/proc/1/comm': 'irqbalance' };
const CASES: readonly [string, fc.Arbitrary<string>, () => Setting][] = [
  ['a hexadecimal mask', masks.map(HEX.print), () => setting(HEX)],
  ['a list', masks.map(LIST.print), () => setting(LIST)],
  [
    'the list of irqbalance',
    masks.map(LIST.print),
    () => irqbalanceSettings(kernelTree(SOCKET), async () => '')[0]!,
  ],
  [
    'a limit of idle states',
    fc.oneof(fc.constantFrom('0', 'n/a'), fc.integer({ min: 1, max: 100 }).map(String)),
    () => {
      const cpu = '/sys/devices/system/cpu/cpu3';
      const files = kernelTree({
        [`${cpu}/power/pm_qos_resume_latency_us`]: '0',
        ...Object.fromEntries([0, 1, 20, 40].map((us) => [`${cpu}/cpuidle/state${us}/latency`, String(us)])),
      });
      return [...idle.settings(files, demandOf(machine, quiet('3')), [])][0]!;
    },
  ],
];

describe.each(CASES)('the target of %s', (_, bases, make) => {
  const made = make();

  it('is the base itself without a demand', () => {
    fc.assert(
      fc.property(bases, (base) => {
        expect(made.target(base, demandOf(machine))).toBe(base);
      }),
    );
  });

  it('is its own target', () => {
    fc.assert(
      fc.property(bases, grants, (base, demands) => {
        const demand = demandOf(machine, ...demands);
        const target = made.target(base, demand);
        expect(made.target(target, demand)).toBe(target);
      }),
    );
  });

  it('does not depend on the order of grants', () => {
    fc.assert(
      fc.property(bases, grants, (base, demands) => {
        const opposite = demandOf(machine, ...[...demands].reverse());
        expect(made.target(base, opposite)).toBe(made.target(base, demandOf(machine, ...demands)));
      }),
    );
  });

  it('disturbs no CPU once it is in force', () => {
    fc.assert(
      fc.property(bases, grants, (base, demands) => {
        const demand = demandOf(machine, ...demands);
        fc.pre(!machine.cpus.isSubsetOf(demand.cpus));
        expect(String(made.disturbs(made.target(base, demand), demand))).toBe('');
      }),
    );
  });
});

describe.each([
  ['hexadecimal', HEX],
  ['list', LIST],
] as const)('the target of a mask in %s form', (_, text) => {
  it('has an online CPU if there was one before', () => {
    fc.assert(
      fc.property(masks, grants, (base, demands) => {
        const target = text.parse(setting(text).target(text.print(base), demandOf(machine, ...demands)))!;
        fc.pre(base.intersects(machine.cpus));
        expect(target.intersects(machine.cpus)).toBe(true);
      }),
    );
  });

  it('is printed as it is read', () => {
    fc.assert(
      fc.property(masks, (cpus) => {
        expect(String(text.parse(text.print(cpus)))).toBe(String(cpus));
      }),
    );
  });
});
