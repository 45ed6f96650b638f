// The fingerprint of a node's pods, against values computed by others.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countedPod, isCounted } from '../../lib/publish/counted-pods.js';
import { hashOfPod, podFingerprint } from '../../lib/publish/pod-fingerprint.js';
import { xxhash64 } from '../../lib/publish/xxhash64.js';

// By python3-xxhash 3.2.0 of Debian, which wraps the reference implementation: lengths on each side
// of each step, with two seeds.
const HASHES: readonly (readonly [length: number, seed: bigint, hash: string])[] = [
  [0, 0n, 'ef46db3751d8e999'],
  [1, 0x9e3779b185ebca87n, 'b3010d558ba3458a'],
  [3, 0x9e3779b185ebca87n, 'd2d6eaa2f2190aa9'],
  [4, 0n, '74cfe386b57ada91'],
  [7, 0x9e3779b185ebca87n, '9fd88375a0ddf04a'],
  [8, 0n, '1c8f7092ce734a4e'],
  [12, 0n, 'cbc0dc86858f2e27'],
  [31, 0x9e3779b185ebca87n, 'bc1cf62c6d1c718a'],
  [32, 0n, '62474d5fc1a1e95d'],
  [33, 0x9e3779b185ebca87n, '237c3acb4e86fa6e'],
  [63, 0x9e3779b185ebca87n, '4e32d081e97075fd'],
  [64, 0n, 'c1e69a3b133c2ee1'],
  [83, 0x9e3779b185ebca87n, '7009f443bd8b8418'],
];

const TEXT = 'the quick brown fox jumps over the lazy dog, and over the 17 other dogs of the pack';

// From the tests and test data of github.com/k8stopologyawareschedwg/podfingerprint, and the last
// from those of github.com/kubernetes-sigs/scheduler-plugins.
const FINGERPRINTS: readonly (readonly [fingerprint: string, pods: string])[] = [
  ['pfp0v001b92008c14168b3a6', 'ns1/n1 ns1/n2 ns2/n1 ns3/n1 ns3/n2'],
  ['pfp0v001607b76a0e9d3aeb4', 'production/jaeger-dpgjk production/nginx-rt684 production/envoy-g9m22'],
  [
    'pfp0v001567144e4a561bb5a',
    'analytics/controller-69dkj kube-public/subscriber-tq6v7 kube-public/transformer-hfbng ' +
      'kube-public/validator-c6pn5 kube-system/proxy-wszrd middleware/processor-jkrl4 ' +
      'network/gateway-vsll5 network/importer-kzdfr network/importer-q5vt9 staging/prometheus-bwgbn',
  ],
  ['pfp0v0019e0420efb37746c6', 'namespace1/pod1'],
];

const fingerprintOf = (pods: readonly string[]) =>
  podFingerprint(
    pods.map((pod) => {
      const [namespace = '', name = ''] = pod.split('/');
      return hashOfPod(namespace, name);
    }),
  );

it.each(HASHES)('XXH64 of %i bytes with seed %i is %s', (length, seed, hash) => {
  expect(
    xxhash64(Buffer.from(TEXT.slice(0, length)), seed)
      .toString(16)
      .padStart(16, '0'),
  ).toBe(hash);
});

it.each(FINGERPRINTS)('The fingerprint is %s, as others compute it', (fingerprint, pods) => {
  expect(fingerprintOf(pods.split(' '))).toBe(fingerprint);
});

it('The fingerprint does not depend on the order of the pods', () => {
  const pods = FINGERPRINTS[2]![1].split(' ');
  const shuffled = fc.shuffledSubarray(pods, { minLength: pods.length });
  fc.assert(fc.property(shuffled, (others) => fingerprintOf(others) === FINGERPRINTS[2]![0]));
});

describe('a pod is counted', () => {
  const ZONE = new Set(['cpu', 'memory', 'example.com/nic']);
  const pod = (phase: string, qosClass: string, requests = {}, sidecar = {}) =>
    countedPod({
      metadata: { namespace: 'default', name: 'a' },
      spec: {
        containers: [{ resources: { requests } }],
        initContainers: [
          { resources: { requests: { 'example.com/nic': '1' } } },
          { restartPolicy: 'Always', resources: { requests: sidecar } },
        ],
      },
      status: { phase, qosClass },
    });

  it('while it runs', () => {
    expect(isCounted(pod('Running', 'BestEffort'), ZONE)).toBe(true);
    for (const phase of ['Succeeded', 'Failed'])
      expect(isCounted(pod(phase, 'Guaranteed'), ZONE)).toBe(false);
  });

  it('before it runs, if a scheduler has reserved for it what no zone shows', () => {
    expect(isCounted(pod('Pending', 'Guaranteed', { cpu: '1', memory: '1Gi' }), ZONE)).toBe(true);
    expect(isCounted(pod('Pending', 'Burstable', { 'example.com/nic': '1' }), ZONE)).toBe(true);
    expect(isCounted(pod('Pending', 'Burstable', {}, { 'example.com/nic': '1' }), ZONE)).toBe(true);
  });

  it('not before it runs otherwise: its image may never come', () => {
    expect(isCounted(pod('Pending', 'Burstable', { cpu: '1' }), ZONE)).toBe(false);
    expect(isCounted(pod('Pending', 'BestEffort', { 'example.com/gpu': '1' }), ZONE)).toBe(false);
  });
});
