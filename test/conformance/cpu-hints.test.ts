// needs: nothing
import { describe, expect, it } from 'vitest';
import * as numalign from '../support/package.js';
import type { Case, Numalign } from './case.js';
import type { RecordedHint } from './hint.js';
import { contextOf } from './read.js';
import { readCases, replay } from './replay.js';
import { outcomeOf, vectors } from './support/cases.js';

type CpuHints = numalign.Topology['cpuHints'];
type Question = Parameters<CpuHints>[0];

const file = readCases(vectors('cpu-hints'))!;

/** The package with another cpuHints in it, which gets the true one. */
function withCpuHints(replaced: (cpuHints: CpuHints, question: Question) => Iterable<unknown>): Numalign {
  const discover = async (options?: numalign.DiscoverOptions) => {
    const topology = await numalign.discover(options);
    const cpuHints = (question: Question) => replaced((inner) => topology.cpuHints(inner), question);
    return { cpuHints } as unknown as numalign.Topology;
  };
  return { ...numalign, discover };
}

const answering = (hints: readonly RecordedHint[]) =>
  withCpuHints(() =>
    hints.map(({ nodes, preferred }) => ({ nodes: numalign.NodeSet.from(nodes ?? []), preferred })),
  );

describe('the recorded cases of cpu-hints', () => {
  it('fail if their answer is altered and none of the known differences explains it', async () => {
    const context = contextOf(file.path, numalign);
    const irregular = ['2s-6c2t-offline', 'uneven-numa', 'hybrid-8p8e', 'harvested-l3'];
    const notNoticed: string[] = [];
    for (const vector of file.cases) {
      const { fullPhysicalCpusOnly } = vector.options as { fullPhysicalCpusOnly: boolean };
      if (fullPhysicalCpusOnly || vector.reusable !== '' || irregular.includes(vector.topology as string))
        continue;
      const hints = vector.hints as RecordedHint[];
      const altered = [
        [...hints, { nodes: [0], preferred: false }],
        hints.length > 0 && hints.slice(0, -1),
        hints.length > 0 &&
          hints.map((hint, i) => (i === 0 ? { ...hint, preferred: !hint.preferred } : hint)),
        hints.length > 1 && [...hints].reverse(),
      ];
      for (const answer of altered) {
        if (!answer) continue;
        const { outcome } = await file.kind.run({ ...vector, hints: answer } as unknown as Case, context);
        if (outcome !== 'failed') notNoticed.push(`${vector.id} ${JSON.stringify(answer)}`);
      }
    }
    expect(notNoticed).toEqual([]);
  });

  it.each<[string, number, Parameters<typeof withCpuHints>[0]]>([
    ['ignores reusable CPUs', 20, (cpuHints, { reusable: _, ...question }) => cpuHints(question)],
    [
      'takes reusable CPUs for free ones',
      20,
      (cpuHints, { reusable = '', available, ...question }) => {
        const all = numalign.CpuSet.coerce(available).union(numalign.CpuSet.coerce(reusable));
        return cpuHints({ ...question, available: all });
      },
    ],
    ['ignores what is assigned', 20, (cpuHints, { assigned: _, ...question }) => cpuHints(question)],
    [
      'prefers all',
      20,
      (cpuHints, question) => Array.from(cpuHints(question), (hint) => ({ ...hint, preferred: true })),
    ],
    [
      'prefers none',
      20,
      (cpuHints, question) => Array.from(cpuHints(question), (hint) => ({ ...hint, preferred: false })),
    ],
    ['ignores align-by-socket', 10, (cpuHints, question) => cpuHints({ ...question, alignBySocket: false })],
    ['aligns by socket always', 10, (cpuHints, question) => cpuHints({ ...question, alignBySocket: true })],
    ['leaves out the widest', 20, (cpuHints, question) => [...cpuHints(question)].slice(0, -1)],
    [
      'lists only preferred hints',
      20,
      (cpuHints, question) => [...cpuHints(question)].filter((hint) => hint.preferred),
    ],
    ['lists them in another order', 20, (cpuHints, question) => [...cpuHints(question)].reverse()],
    [
      'asks for a CPU less',
      10,
      (cpuHints, question) => cpuHints({ ...question, request: Math.max(1, question.request - 1) }),
    ],
  ])('fail with a package that %s', async (_, atLeast, replaced) => {
    const { failures } = await replay(file, withCpuHints(replaced), undefined, atLeast + 1);
    expect(failures.length).toBeGreaterThan(atLeast);
  });
});

describe('a cpu-hints case', () => {
  // 2s-3c2t-inter: even CPUs are node 0, odd ones node 1; CPU n and n + 6 are a core.
  const vector = {
    topology: '2s-3c2t-inter',
    reserved: '',
    available: '0-11',
    reusable: '',
    request: 2,
    options: {},
  };
  const first: RecordedHint = { nodes: [0], preferred: true };
  const second: RecordedHint = { nodes: [1], preferred: true };
  const both: RecordedHint = { nodes: [0, 1], preferred: false };
  const others: RecordedHint[] = [{ nodes: [1], preferred: false }];

  it('passes with the recorded hints and fails with others', async () => {
    expect(await outcomeOf({ ...vector, hints: [first, second, both] })).toBe('passed');
    expect(await outcomeOf({ ...vector, hints: [first, second] })).toBe('failed');
    expect(await outcomeOf({ ...vector, hints: [] })).toBe('failed');
    const crash = withCpuHints(() => {
      throw new TypeError('no');
    });
    expect(await outcomeOf({ ...vector, hints: [] }, crash)).toBe('failed');
  });

  it('counts as D4 where reusable CPUs are also free, if the hints are right with each counted once', async () => {
    const overlapping = { ...vector, available: '0,1,3', reusable: '0', hints: [first, both] };
    expect(await outcomeOf(overlapping)).toBe('D4');
    expect(await outcomeOf(overlapping, answering([both]))).toBe('D4');
    expect(await outcomeOf(overlapping, answering([second, both]))).toBe('failed');
    expect(await outcomeOf(overlapping, answering([]))).toBe('failed');
    expect(await outcomeOf(overlapping, answering([{ ...both, preferred: true }]))).toBe('failed');
    expect(
      await outcomeOf({ ...overlapping, available: '1,3', hints: [first, both] }, answering([both])),
    ).toBe('failed');
  });

  it('counts as A4 where only halves of cores are free, if whole cores get their hints', async () => {
    const halves = { ...vector, available: '0,2,1,7', options: { fullPhysicalCpusOnly: true } };
    const recorded = { ...halves, hints: [first, second, both] };
    expect(await outcomeOf(recorded)).toBe('A4');
    expect(await outcomeOf(recorded, answering([second, both]))).toBe('A4');
    for (const wrong of [[], [both], [second], [both, second], [second, second, both], [...others, both]])
      expect(await outcomeOf(recorded, answering(wrong))).toBe('failed');
    // What is no multiple of the threads per core keeps the hints of single CPUs.
    expect(await outcomeOf({ ...recorded, request: 1 }, answering([second, both]))).toBe('failed');
    // Without full-pcpus-only, and where no core is free in part, there is nothing to differ about.
    expect(await outcomeOf({ ...recorded, options: {} }, answering([second, both]))).toBe('failed');
    expect(await outcomeOf({ ...recorded, available: '0,6,1,7' }, answering([second, both]))).toBe('failed');
  });

  it('fails on an irregular machine too: hints are of no averages', async () => {
    const irregular = {
      ...vector,
      topology: 'hybrid-8p8e',
      available: '0-23',
      hints: [{ nodes: [0], preferred: false }],
    };
    expect(await outcomeOf(irregular)).toBe('failed');
    expect(await outcomeOf(irregular, answering([]))).toBe('failed');
  });

  it('of assigned CPUs is answered from them alone', async () => {
    const assigned = { ...vector, available: '1', assigned: '0,2', options: { fullPhysicalCpusOnly: true } };
    expect(await outcomeOf({ ...assigned, hints: [first, both] })).toBe('passed');
    expect(await outcomeOf({ ...assigned, request: 3, hints: [] })).toBe('passed');
    expect(await outcomeOf({ ...assigned, hints: [first, both] }, answering([both]))).toBe('failed');
    expect(await outcomeOf({ ...assigned, request: 3, hints: [] }, answering([both]))).toBe('failed');
  });
});
