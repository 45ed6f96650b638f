import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { containerRequest } from '../../lib/placement/container-request.js';
import { containerOf, podOf, thrownBy } from '../support/nri-objects.js';

const GUARANTEED = { cpus: 2, memory: 2 ** 30 };
const ask = (container: Parameters<typeof containerOf>[0] = {}, pod: Parameters<typeof podOf>[0] = {}) =>
  containerRequest('numalign', podOf(pod), containerOf(container));

describe('A container', () => {
  it('requests exclusive CPUs if its quota is whole CPUs, its request the same, and its memory limited', () => {
    const { pod, exclusiveCpus } = ask(GUARANTEED);
    expect(exclusiveCpus).toBe(2);
    expect(pod).toEqual({
      uid: 'c1',
      name: 'numalign:default/web/main',
      qosClass: 'Guaranteed',
      containers: [{ name: 'main', limits: { cpu: 2, memory: 2 ** 30 } }],
    });
  });

  it('requests only memory if its CPUs are no whole number', () => {
    const { pod, exclusiveCpus } = ask({ cpus: 1.5, memory: 2 ** 30 });
    expect(exclusiveCpus).toBe(0);
    expect(pod).toMatchObject({ containers: [{ limits: { cpu: 1.5, memory: 2 ** 30 } }] });
  });

  it.each([
    ['without a memory limit', { cpus: 2 }],
    ['without limits', {}],
    ['with a request below its limit', { ...GUARANTEED, shares: 1024 }],
    ['with no limit, as runtimes write it', { memory: Number.MAX_SAFE_INTEGER, quota: -1 }],
  ])('runs in the shared pool %s', (_, container) => {
    expect(ask(container)).toMatchObject({ pod: null, exclusiveCpus: 0 });
  });

  it.each(['/kubepods/burstable/pod1', 'kubepods-burstable-pod1.slice', 'kubepods-besteffort.slice'])(
    'runs in the shared pool if the kubelet has its pod in %s',
    (cgroupParent) => {
      expect(ask(GUARANTEED, { cgroupParent }).pod).toBeNull();
    },
  );

  it('counts by its shares if the kubelet of a Guaranteed pod enforces no quota', () => {
    const { exclusiveCpus } = ask({ shares: 3072, memory: 2 ** 30 }, { cgroupParent: '/kubepods/pod1' });
    expect(exclusiveCpus).toBe(3);
  });

  it('books hugepages of a Guaranteed pod by their sizes, with Kubernetes’ names', () => {
    const hugepages = { '2MB': 2 ** 22, '1GB': 0, '64KB': 2 ** 20 };
    expect(ask({ ...GUARANTEED, hugepages }).pod).toMatchObject({
      containers: [{ limits: { 'hugepages-2Mi': 2 ** 22, 'hugepages-64Ki': 2 ** 20 } }],
    });
  });

  it('keeps the CPUs that its creator has chosen for it in the shared pool', () => {
    expect(String(ask({ cpuset: '2-3' }).chosenCpus)).toBe('2-3');
    expect(ask({ ...GUARANTEED, cpuset: '2-3' }).chosenCpus).toBeNull();
  });

  it('has the same whole number of CPUs as the kubelet had for its shares and quota', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 512_000 }), (millis) => {
        const shares = Math.floor((millis * 1024) / 1000);
        const quota = millis * 100;
        const asked = ask({ shares: Math.max(2, shares), quota, memory: 2 ** 30 });
        expect(asked.exclusiveCpus).toBe(millis % 1000 === 0 ? millis / 1000 : 0);
        if (shares >= 2) expect(asked.pod).toMatchObject({ qosClass: 'Guaranteed' });
      }),
    );
  });
});

describe('Annotations', () => {
  it('request exclusive CPUs and memory for a container without limits', () => {
    const annotations = { 'numalign.io/cpu': '2', 'numalign.io/memory': '1Gi' };
    expect(ask({}, { annotations })).toMatchObject({
      exclusiveCpus: 2,
      pod: { qosClass: 'Guaranteed', containers: [{ limits: { cpu: 2, memory: '1Gi' } }] },
    });
  });

  it('keep a container in the shared pool that would have exclusive CPUs', () => {
    expect(ask(GUARANTEED, { annotations: { 'numalign.io/cpu': '0' } }).pod).toBeNull();
  });

  it('of a container take precedence over those of its pod, and specific ones over general ones', () => {
    const annotations = { 'numalign.io/cpu': '2', 'numalign.io/cpu.main': '3', 'numalign.io/cpu.other': '4' };
    expect(ask({}, { annotations }).exclusiveCpus).toBe(3);
    expect(ask({ name: 'third' }, { annotations }).exclusiveCpus).toBe(2);
    expect(ask({ annotations: { 'numalign.io/cpu': '5' } }, { annotations }).exclusiveCpus).toBe(5);
  });

  it('request devices, also for a container in the shared pool', () => {
    const annotations = {
      'numalign.io/resources': 'example.com/nic=1, example.com/gpu=2',
      'numalign.io/cdi': 'true',
    };
    expect(ask({}, { annotations })).toMatchObject({
      exclusiveCpus: 0,
      cdi: true,
      pod: { containers: [{ limits: { 'example.com/nic': 1, 'example.com/gpu': 2 } }] },
    });
  });

  it.each([
    ['cpu', '1.5'],
    ['cpu', '-1'],
    ['cpu', ''],
    ['cpu', '999999'],
    ['memory', '1Gib'],
    ['memory', '-1'],
    ['smt', 'yes'],
    ['cdi', 'maybe'],
    ['core-kind', 'fast'],
    ['memory-tiers', 'hbm,fast'],
    ['resources', 'nic=1'],
    ['resources', 'example.com/nic'],
    ['resources', 'example.com/nic=1=2'],
    ['resources', 'example.com/nic=1,example.com/nic=1'],
    ['resources', ''],
  ])('are refused if %s is "%s"', (key, value) => {
    const error = thrownBy(() => ask({}, { annotations: { [`numalign.io/${key}`]: value } }));
    expect(error).toMatchObject({ code: 'ERR_INVALID_ANNOTATION', details: { value } });
    expect((error as Error).message).toContain(`numalign.io/${key}`);
  });
});
