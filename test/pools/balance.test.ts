// needs: nothing
// Which Worker moves to a CPU that another one has left.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import { successorOn } from '../../lib/pools/balance.js';

const on = (...ids: number[]) => ids.map((id, name) => ({ name, cpus: CpuSet.of(id) }));

describe('successorOn', () => {
  it('takes the last that came to the fullest CPU', () => {
    expect(successorOn(0, on(1, 2, 2, 1, 1))?.name).toBe(4);
    expect(successorOn(0, on(1, 2, 2))?.name).toBe(2);
  });

  it('takes none if that would make the other CPU the emptier one', () => {
    expect(successorOn(0, on(1, 2))).toBeUndefined();
    expect(successorOn(0, on(0, 1, 1))).toBeUndefined();
    expect(successorOn(0, [])).toBeUndefined();
  });

  it('takes none that may run on several CPUs', () => {
    const both = { cpus: CpuSet.of(1, 2) };
    expect(successorOn(0, [both, both, both])).toBeUndefined();
  });

  it('keeps the CPUs level, whichever Workers end', () => {
    const cpus = [0, 1, 2];
    const count = (workers: { cpus: CpuSet }[], cpu: number) =>
      workers.filter((worker) => worker.cpus.has(cpu)).length;
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat())), (events) => {
        let workers: { cpus: CpuSet }[] = [];
        for (const event of events) {
          if (event === null) {
            const [least] = [...cpus].sort((a, b) => count(workers, a) - count(workers, b));
            workers.push({ cpus: CpuSet.of(least!) });
          } else if (workers.length > 0) {
            const [{ cpus: left }] = workers.splice(event % workers.length, 1) as [{ cpus: CpuSet }];
            const heir = successorOn(left.first!, workers);
            workers = workers.map((worker) => (worker === heir ? { cpus: left } : worker));
          }
          const counts = cpus.map((cpu) => count(workers, cpu));
          expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});
