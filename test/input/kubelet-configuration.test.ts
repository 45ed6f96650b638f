// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromKubeletConfiguration } from '../../lib/input/kubelet-configuration.js';
import { thrownBy } from '../support/error-of.js';

const document = (fields: object = {}) => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  ...fields,
});
const DEFAULTS = {
  cpuManagerPolicy: 'none',
  cpuManagerPolicyOptions: {},
  memoryManagerPolicy: 'None',
  policy: 'none',
  topologyManagerPolicyOptions: {},
  scope: 'container',
};
const errorOf = (given: unknown) => thrownBy(() => fromKubeletConfiguration(given));

describe('A KubeletConfiguration', () => {
  it('gives every option that it sets, and nothing of its other fields', () => {
    const fields = {
      cpuManagerPolicy: 'static',
      cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
      cpuManagerReconcilePeriod: '10s',
      topologyManagerPolicy: 'single-numa-node',
      topologyManagerPolicyOptions: { 'prefer-closest-numa-nodes': 'true' },
      topologyManagerScope: 'pod',
      reservedSystemCPUs: '0-1',
      systemReserved: { cpu: '500m', memory: '1Gi' },
      kubeReserved: { cpu: 1 },
      memoryManagerPolicy: 'Static',
      reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }],
      featureGates: { PodLevelResources: false },
    };
    const featureGates = { X: true, ...fields.featureGates };
    const { topologyManagerPolicy: policy, topologyManagerScope: scope, ...same } = fields;
    const options = fromKubeletConfiguration(document({ ...fields, maxPods: 110, featureGates }));
    expect(options).toEqual({ ...same, policy, scope });
  });

  it("gives Kubernetes' defaults for what it leaves out, empty or null", () => {
    expect(fromKubeletConfiguration(document())).toStrictEqual(DEFAULTS);
    expect(fromKubeletConfiguration({ kind: 'KubeletConfiguration' })).toStrictEqual(DEFAULTS);
    const empty = {
      cpuManagerPolicy: '',
      topologyManagerPolicyOptions: null,
      reservedSystemCPUs: '',
      kubeReserved: null,
    };
    expect(fromKubeletConfiguration(document(empty))).toStrictEqual(DEFAULTS);
  });

  it('means the same by a policy option and by its text', () => {
    const value = fc.oneof(fc.boolean(), fc.integer(), fc.constantFrom('true', 'false', '', 'x'));
    fc.assert(
      fc.property(fc.dictionary(fc.string(), value), (options) => {
        const texts = Object.fromEntries(Object.entries(options).map(([key, item]) => [key, String(item)]));
        for (const field of ['cpuManagerPolicyOptions', 'topologyManagerPolicyOptions'] as const) {
          expect(fromKubeletConfiguration(document({ [field]: options }))[field]).toEqual(texts);
        }
      }),
    );
  });

  it.each(['auto', 'off', '128Mi', 0])('may have the drift tolerance %s, which sets nothing', (tolerance) => {
    const options = { 'memory-drift-tolerance': tolerance };
    expect(fromKubeletConfiguration(document({ memoryManagerPolicyOptions: options }))).toStrictEqual(
      DEFAULTS,
    );
  });

  it('may have gates of which numalign needs none', () => {
    const featureGates = { InPlacePodVerticalScalingExclusiveCPUs: true, MemoryManagerDriftTolerance: true };
    expect(fromKubeletConfiguration(document({ featureGates }))).toStrictEqual(DEFAULTS);
  });

  it('is copied and frozen', () => {
    const given = document({ reservedMemory: [{}], kubeReserved: { cpu: 1 } });
    const options = fromKubeletConfiguration(given);
    for (const part of [options, ...Object.values(options).filter((value) => typeof value === 'object')]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
    expect(Object.values(given).some((part) => Object.isFrozen(part) && typeof part === 'object')).toBe(
      false,
    );
  });

  it('is refused when it is another document', () => {
    const others = [
      { kind: 'Pod' },
      { kind: undefined },
      { kind: 'kubeletconfiguration' },
      { apiVersion: 'v1' },
    ];
    for (const fields of others) {
      const error = errorOf(document(fields));
      const [name, value] = Object.entries(fields)[0]!;
      expect(error?.code).toBe('ERR_INVALID_OPTION');
      expect(error?.details).toMatchObject({ option: `kubeletConfiguration.${name}`, value });
    }
    for (const value of [undefined, null, 'kind: KubeletConfiguration', [document()]]) {
      expect(errorOf(value)?.details).toMatchObject({
        option: 'kubeletConfiguration',
        value,
        valid: 'an object',
      });
    }
  });

  it('is refused with unknown options of the memory policy', () => {
    const options = { 'drift-tolerance': 'auto' };
    expect(errorOf(document({ memoryManagerPolicyOptions: options }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringContaining('memory-drift-tolerance'),
    });
  });

  it('is refused when a field has the wrong shape, and the error names the field', () => {
    const wrong: [string, unknown, string?][] = [
      ['cpuManagerPolicy', true],
      ['topologyManagerPolicy', ['restricted']],
      ['topologyManagerScope', 1],
      ['cpuManagerPolicyOptions', 'full-pcpus-only=true'],
      ['cpuManagerPolicyOptions', { 'full-pcpus-only': null }, '.full-pcpus-only'],
      ['topologyManagerPolicyOptions', [{}]],
      [
        'topologyManagerPolicyOptions',
        { 'max-allowable-numa-nodes': Number.NaN },
        '.max-allowable-numa-nodes',
      ],
      ['reservedSystemCPUs', 0],
      ['systemReserved', 'cpu=1'],
      ['kubeReserved', ''],
      ['kubeReserved', { cpu: true }, '.cpu'],
      ['cpuManagerReconcilePeriod', 10],
      ['memoryManagerPolicy', {}],
      ['reservedMemory', { numaNode: 0 }],
      ['memoryManagerPolicyOptions', 'auto'],
      ['memoryManagerPolicyOptions', { 'memory-drift-tolerance': 'on' }, '.memory-drift-tolerance'],
      ['memoryManagerPolicyOptions', { 'memory-drift-tolerance': '-1Mi' }, '.memory-drift-tolerance'],
    ];
    for (const [name, value, path = ''] of wrong) {
      const error = errorOf(document({ [name]: value }));
      expect(error?.code, name).toBe('ERR_INVALID_OPTION');
      expect(error?.details).toMatchObject({
        option: `kubeletConfiguration.${name}${path}`,
        valid: expect.any(String),
      });
    }
  });
});
