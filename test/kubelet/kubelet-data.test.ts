// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, openManager } from '../../lib/index.js';
import {
  type CpuManagerState,
  formatCpuManagerState,
  parseCpuManagerState,
} from '../../lib/kubelet/cpu-manager-state.js';
import { dataChecksum } from '../../lib/kubelet/kubelet-format.js';
import {
  formatMemoryManagerState,
  type MemoryManagerState,
  parseMemoryManagerState,
} from '../../lib/kubelet/memory-manager-state.js';
import { budget } from '../support/budget.mjs';
import { errorOf, thrownBy } from '../support/error-of.js';
import { cpuManagerStates, memoryManagerStates } from '../support/kubelet-states.js';

/** A file as the kubelet 1.37 writes it: the old members, then everything as a text. */
function withData(older: string, data: string, checksum = dataChecksum(data)): string {
  return `${older.slice(0, -1)},"data":${JSON.stringify(data)},"dataChecksum":${checksum}}`;
}

const withoutChecksum = (text: string) => text.replace(/,"checksum":\d+\}$/, '}');

function newCpuFile({ podEntries = new Map(), ...state }: CpuManagerState): string {
  const data = withoutChecksum(formatCpuManagerState({ ...state, podEntries }));
  return withData(formatCpuManagerState(state), data);
}

function newMemoryFile({ podEntries = new Map(), ...state }: MemoryManagerState): string {
  const data = withoutChecksum(formatMemoryManagerState({ ...state, podEntries }));
  return withData(formatMemoryManagerState(state), data);
}

const on = { podLevelResourceManagers: true };
const cpu: CpuManagerState = {
  policyName: 'static',
  defaultCpuSet: CpuSet.parse('0-1,6-7'),
  entries: new Map([['p', new Map([['own', CpuSet.parse('2-3')]])]]),
  podEntries: new Map([['p', { cpuSet: CpuSet.parse('2-5') }]]),
};
const memory: MemoryManagerState = {
  policyName: 'Static',
  machineState: new Map(),
  entries: new Map(),
  podEntries: new Map([['p', { memoryBlocks: [{ numaAffinity: [0], type: 'memory', size: 5n }] }]]),
};

describe("the kubelet's files with data (1.37)", () => {
  it('have a checksum as in another checkpoint of the kubelet, which its own tests quote', () => {
    const requests = '{"pod1":{"container1":{"requests":{"cpu":"1Ki","memory":"1Ki"}}}}';
    expect(dataChecksum(`{"allocationEntries":${requests}}`)).toBe(1555601526n);
  });

  it('are read from data, which alone has the CPUs and the memory of pods as a whole', () => {
    expect(parseCpuManagerState(newCpuFile(cpu), on)).toEqual({ ...cpu, verified: true });
    expect(parseMemoryManagerState(newMemoryFile(memory), on)).toEqual({ ...memory, verified: true });
  });

  it('are written for v1.37 with the older members for older kubelets', async () => {
    const v1_37 = { kubeletVersion: 'v1.37' } as const;
    const { podEntries: _, ...older } = cpu;
    const text = formatCpuManagerState(cpu, v1_37);
    expect(text).toBe(newCpuFile(cpu));
    expect(parseCpuManagerState(text, { ...on, ...v1_37 })).toEqual({ ...cpu, verified: true });
    expect(text.replace(/,"data":.*/, '}')).toBe(formatCpuManagerState(older, { kubeletVersion: 'v1.36' }));
    expect(formatMemoryManagerState(memory, v1_37)).toBe(newMemoryFile(memory));
    expect(formatCpuManagerState(older, v1_37)).toBe(newCpuFile(older));
    const topology = await discover({ synthetic: 'core:2 pu:1' });
    const manager = await openManager({ topology });
    const { cpuManagerState, memoryManagerState } = manager.exportKubelet();
    for (const file of [cpuManagerState, memoryManagerState]) expect(file).toContain('"dataChecksum":');
    await manager.configure({ kubeletVersion: 'v1.36' });
    expect(manager.exportKubelet().cpuManagerState).not.toContain('data');
  });

  it('have no first version, and are never read without a checksum', () => {
    const empty = '{"policyName":"static","defaultCpuSet":"0-3"';
    const first = `${empty},"entries":{"c1":"2-3"},"checksum":1}`;
    const reading = { allowUnverified: true, runningContainers: { c1: ['p', 'own'] } } as const;
    const read = (file: string, kubeletVersion: 'v1.36' | 'v1.37') =>
      thrownBy(() => parseCpuManagerState(file, { ...reading, kubeletVersion }));
    expect(read(`${empty},"checksum":0}`, 'v1.36')).toBeUndefined();
    expect(read(`${empty},"checksum":0}`, 'v1.37')).toMatchObject({
      code: 'ERR_KUBELET_STATE',
      details: { valid: 'a checksum, as of v1.37' },
    });
    expect(read(first.replace('1}', '0}'), 'v1.36')).toBeUndefined();
    expect(read(first, 'v1.37')?.message).toContain('entries.c1 is a text');
  });

  it('without the gate are read if nothing is lost, and refused otherwise', () => {
    const { podEntries: _, ...cpuWithoutPods } = cpu;
    expect(parseCpuManagerState(newCpuFile(cpuWithoutPods))).toEqual({ ...cpuWithoutPods, verified: true });
    for (const action of [
      () => parseCpuManagerState(newCpuFile(cpu), { allowUnverified: true }),
      () => parseMemoryManagerState(newMemoryFile(memory), { allowUnverified: true }),
    ]) {
      expect(thrownBy(action)).toMatchObject({
        code: 'ERR_KUBELET_STATE',
        message: expect.stringContaining('podEntries, which would be lost'),
        details: { valid: expect.stringContaining('PodLevelResourceManagers') },
      });
    }
  });

  it('are refused if data is damaged, also where the older members are right', () => {
    const [text, memoryText] = [newCpuFile(cpu), newMemoryFile(memory)];
    const damages: [file: string, message: RegExp][] = [
      [text.replace(/"dataChecksum":\d+/, '"dataChecksum":4242'), /damaged: its checksum is 4242/],
      [text.replace(/,"dataChecksum":\d+/, ''), /damaged: its checksum is 0/],
      [text.replace('2-5', '2-6'), /damaged/],
      [text.replace(/"data":".*","dataC/, '"dataC'), /damaged/],
      [withData(formatCpuManagerState(cpu), '{'), /not JSON/],
      [withData(formatCpuManagerState(cpu), '{"policyName":"static","defaultCpuSet":"x"}'), /list of CPUs/],
    ];
    for (const [file, message] of damages) {
      for (const options of [on, { ...on, allowUnverified: true }]) {
        const error = thrownBy(() => parseCpuManagerState(file, options));
        expect(error).toMatchObject({ code: 'ERR_KUBELET_STATE', message: expect.stringMatching(message) });
      }
    }
    expect(
      thrownBy(() => parseMemoryManagerState(memoryText.replace('"size\\":5', '"size\\":6'), on)),
    ).toMatchObject({ code: 'ERR_KUBELET_STATE', details: { valid: expect.anything() } });
  });

  it('of newer kubelets, with members that would be lost, are refused by the name of the member', () => {
    const { podEntries: _, ...cpuWithoutPods } = cpu;
    const older = formatCpuManagerState(cpuWithoutPods);
    const data = withoutChecksum(formatCpuManagerState(cpu));
    const newer: [file: string, where: string, member: string][] = [
      [withData(older, data.replace(/\}$/, ',"originals":{"p":{"own":"2"}}}')), 'data', 'originals'],
      [withData(older, data.replace('"2-5"', '"2-5","spare":"6"')), 'data.podEntries.p', 'spare'],
      [older.replace(/\}$/, ',"shares":{}}'), '', 'shares'],
    ];
    for (const [file, where, member] of newer) {
      expect(thrownBy(() => parseCpuManagerState(file, { ...on, allowUnverified: true }))).toMatchObject({
        code: 'ERR_KUBELET_STATE',
        message: expect.stringContaining(`cpu_manager_state${where && `.${where}`} has "${member}"`),
        details: {
          value: member,
          valid: expect.arrayContaining([where.endsWith('p') ? 'cpuSet' : 'entries']),
        },
      });
    }
    const block = formatMemoryManagerState(memory).replace('"size":5', '"size":5,"tier":1');
    const tiered = withData(formatMemoryManagerState(memory), withoutChecksum(block));
    expect(thrownBy(() => parseMemoryManagerState(tiered, on))?.details).toMatchObject({ value: 'tier' });
  });

  it('are read whatever their content, and never as another state if one bit is altered', () => {
    const wholes = fc.uniqueArray(fc.nat(300), { maxLength: 9 }).map((ids) => CpuSet.from(ids));
    fc.assert(
      fc.property(
        cpuManagerStates,
        memoryManagerStates,
        wholes,
        fc.nat(),
        fc.nat(7),
        (a, b, ids, at, bit) => {
          const memoryBlocks = [...b.entries.values()].flatMap((each) => [...each.values()]).flat();
          const states = [
            { ...a, podEntries: new Map([['pod', { cpuSet: ids }]]) },
            { ...b, podEntries: new Map([['pod', { memoryBlocks }]]) },
          ] as const;
          const reads = [
            [newCpuFile(states[0]), parseCpuManagerState],
            [newMemoryFile(states[1]), parseMemoryManagerState],
          ] as const;
          for (const [i, [text, parse]] of reads.entries()) {
            const whole = { ...states[i], verified: true };
            expect(parse(text, on)).toEqual(whole);
            const bytes = Buffer.from(text);
            bytes[at % bytes.length]! ^= 1 << bit;
            let altered: unknown;
            const error = thrownBy(() => (altered = parse(bytes.toString(), on)));
            if (error) expect(error.code).toBe('ERR_KUBELET_STATE');
            else expect(altered).toEqual(whole);
          }
        },
      ),
      { numRuns: budget({ all: 1_000, usual: 60 }) },
    );
  });

  it('are imported with the CPUs of pods as a whole, or not at all', async () => {
    const topology = await discover({ synthetic: 'package:2 [numa(memory=32GiB)] core:4 pu:2' });
    const settings = { topology, memoryManagerPolicy: 'None', reservedSystemCPUs: '0' } as const;
    const file = newCpuFile({ ...cpu, defaultCpuSet: CpuSet.parse('0-1,6-15') });
    const without = await openManager(settings);
    expect(
      await errorOf(() => without.importKubelet({ cpuManagerState: file, memoryManagerState: null })),
    ).toMatchObject({
      code: 'ERR_KUBELET_STATE',
    });
    expect(String(without.sharedPool())).toBe('0-15');
    const manager = await openManager({ ...settings, featureGates: { PodLevelResourceManagers: true } });
    await manager.importKubelet({ cpuManagerState: file, memoryManagerState: null });
    expect(String(manager.sharedPool())).toBe('0-1,6-15');
  });
});
