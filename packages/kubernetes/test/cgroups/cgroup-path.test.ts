import { describe, expect, it } from 'vitest';
import { cgroupPath } from '../../lib/cgroups/cgroup-path.js';

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
