// needs: machine
// takeSnapshot, of a grant among others.
import { describe, expect, it } from 'vitest';
import { snapshotCpus, takeSnapshot } from '../../lib/audit/snapshot.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { CpuSet, NodeSet } from '../../lib/machine/cpu-set.js';

describe('takeSnapshot', () => {
  it('has the scanned CPUs of the grant', () => {
    const all = affinity();
    const cpus = CpuSet.of([...all].at(-1)!);
    const subject = { cpus, roots: [], knownPids: [], isOwn: false, memoryNodes: NodeSet.EMPTY };
    const views = { scan: null, cpus: snapshotCpus(all, true), memory: false };
    expect([...views.cpus.keys()]).toEqual([...all]);
    expect(takeSnapshot(subject, views).cpus.map(({ cpu }) => cpu)).toEqual([...cpus]);
  });
});
