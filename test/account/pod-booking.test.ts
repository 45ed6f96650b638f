// needs: nothing
import { describe, expect, it } from 'vitest';
import { emptyAssignments } from '../../lib/account/assignments.js';
import type { ContainerAssignment, PodAssignment } from '../../lib/account/pod-assignment.js';
import { addPod, removePods, startContainer } from '../../lib/account/pod-changes.js';
import { cpusOf, holdingOf, runningCpus } from '../../lib/account/pod-holdings.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { CpuSet } from '../../lib/index.js';
import { decodePod } from '../../lib/state/format/pod-record.js';
import { podText } from '../../lib/state/format/pod-text.js';
import { thrownBy } from '../support/error-of.js';

const blocks = (bytes: number) => [{ nodes: [0], type: 'memory', bytes }];

function container(
  name: string,
  kind: ContainerAssignment['kind'],
  cpus: string,
  bytes: number,
): ContainerAssignment {
  return {
    ...{ name, kind, started: false, request: {}, isolation: name === 'own' ? 'container' : 'pod' },
    ...{ cpus: CpuSet.parse(cpus), held: CpuSet.EMPTY, hint: { nodes: null, preferred: true } },
    ...{ memory: blocks(bytes), devices: {}, unknown: {} },
    reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
  };
}

const POD: PodAssignment = {
  ...{ uid: 'web', name: 'web', namespace: undefined, policy: 'restricted', scope: 'pod', options: {} },
  containers: [
    container('setup', 'init', '1-3', 96),
    container('own', 'app', '1', 32),
    container('a', 'app', '2-3', 64),
    container('b', 'app', '2-3', 64),
  ],
  booking: { cpus: CpuSet.parse('1-4'), held: CpuSet.parse('5-8'), memory: blocks(96) },
  owner: { kind: 'persistent', uuid: 'ab', pid: null, command: null, cgroup: null, unknown: {} },
  ...{ enforcement: { level: 'recorded', target: null }, upcoming: null, transfer: null },
  ...{ formerOwner: null, admittedAt: 'now', unknown: {} },
};
const STATE = addPod(emptyAssignments(DEFAULT_SETTINGS), POD, { 0: { memory: 96 } });

describe('a pod that is booked as a whole', () => {
  it('is booked once, whatever the shares of its containers', () => {
    expect(holdingOf(POD)).toEqual({ cpus: CpuSet.parse('1-8'), memory: blocks(96), devices: {} });
    expect(runningCpus(POD)).toEqual(CpuSet.parse('1-4'));
  });

  it('gives all of it back when it leaves', () => {
    expect(removePods(STATE, new Set(['web']))).toMatchObject({ pods: [], memory: {} });
  });

  it('keeps the memory of ended init containers', () => {
    const { pods, memory } = startContainer(STATE, POD, 'own');
    expect(memory).toBe(STATE.memory);
    expect(pods[0]!.containers.map((each) => each.memory)).toEqual([[], blocks(32), blocks(64), blocks(64)]);
    expect(holdingOf(pods[0]!)).toEqual(holdingOf(POD));
  });

  it('is read from its text as it was written', () => {
    expect(decodePod(JSON.parse(podText(POD)), 'pod')).toEqual(POD);
  });

  it('is counted right by versions without booking', () => {
    const { booking: _, ...older } = JSON.parse(podText(POD));
    const pod = decodePod(older, 'pod');
    expect(pod.booking).toBeNull();
    expect(cpusOf(pod)).toEqual(cpusOf(POD));
    expect(removePods({ ...STATE, pods: [pod] }, new Set(['web'])).memory).toEqual({});
  });

  it('is damaged if a container has CPUs that are not booked', () => {
    const text = podText(POD).replace('"cpus":"1-4"', '"cpus":"2-4"');
    expect(thrownBy(() => decodePod(JSON.parse(text), 'pod'))).toMatchObject({ code: 'ERR_STATE_CORRUPT' });
  });
});

describe('a pod that is booked by containers', () => {
  it('has a text without booking, and its CPUs show where each container runs', () => {
    const containers = [container('own', 'app', '1', 32), { ...container('rest', 'app', '', 0) }];
    const pod = { ...POD, booking: null, containers: containers.map(withoutPool) };
    expect(podText(pod)).not.toMatch(/booking|isolation/);
    expect(decodePod(JSON.parse(podText(pod)), 'pod')).toEqual(pod);
  });
});

function withoutPool(each: ContainerAssignment): ContainerAssignment {
  return { ...each, isolation: each.cpus.isEmpty ? 'host' : 'container' };
}
