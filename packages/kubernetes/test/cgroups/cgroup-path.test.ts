import { describe, expect, it } from 'vitest';
import { cgroupPath, isInPod } from '../../lib/cgroups/cgroup-path.js';

describe('The cgroup of a container', () => {
  it.each([
    ['/kubepods/burstable/pod1/abc', '/kubepods/burstable/pod1/abc'],
    ['kube/abc', '/kube/abc'],
    [
      'kubepods-burstable-pod1_2.slice:cri-containerd:abc',
      '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-abc.scope',
    ],
    ['system.slice:crio:abc', '/system.slice/crio-abc.scope'],
    ['-.slice:crio:abc', '/crio-abc.scope'],
    ['system.slice::abc', '/system.slice/abc.scope'],
    ['system.slice:x:pod.slice', '/system.slice/pod.slice'],
    ['/a/../../etc', '/etc'],
  ])('of %s is %s', (path, expected) => {
    expect(cgroupPath(path)).toBe(expected);
  });
});

describe('The cgroup of a container in that of its pod', () => {
  const uid = '6a1c-2b34';
  it.each([
    [`/kubepods/burstable/pod${uid}/abc`, true],
    [`/kubelet/kubepods/pod${uid}/abc`, true],
    ['kubepods-pod6a1c_2b34.slice:cri-containerd:abc', true],
    ['kubepods-burstable-pod6a1c_2b34.slice:crio:abc', true],
    [`/kubepods/pod${uid}x/abc`, false],
    [`/kubepods/pod${uid}/abc/nested`, false],
    [`/k8s.io/abc`, false],
    ['/kubepods/pod/abc', false],
    ['', false],
  ])('is found in %s: %s', (path, expected) => {
    expect(isInPod(path, uid)).toBe(expected);
  });

  it('is none without a uid', () => {
    expect(isInPod('/kubepods/pod/abc', '')).toBe(false);
  });
});
