import { describe, expect, it } from 'vitest';
import { areProcessesHidden } from '../../lib/cgroups/hidden-processes.js';

describe('processes of containers', () => {
  it('are hidden in cgroup v1 from all pid namespaces but the first', () => {
    expect(areProcessesHidden(1, 'pid:[4026532252]')).toBe(true);
    expect(areProcessesHidden(1, 'pid:[4026531836]')).toBe(false);
  });

  it('are never hidden in cgroup v2', () => {
    expect(areProcessesHidden(2, 'pid:[4026532252]')).toBe(false);
  });
});
