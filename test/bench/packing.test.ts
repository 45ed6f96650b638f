// needs: documents
// The simulator of `npm run bench -- packing`: its counts are the events.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { budget } from '../support/budget.mjs';

const PACKING = fileURLToPath(new URL('../../bench/packing', import.meta.url));

// They are JavaScript, without types.
const part = (name: string): Promise<any> => import(`${PACKING}/${name}.mjs`);
const { checkSums, simulate } = await part('simulation');
const { PackedNode } = await part('packed-node');
const { ArrangedNode } = await part('arranged-node');
const { capacities, cpusOf, GIB, hasRoom, MACHINES, undivided } = await part('machines');
const { arrivals, atLoad, mixes, parts } = await part('workload');
const { estimate } = await part('estimate');
const { WAYS } = await part('ways');
const { canArrange, less } = await part('arrangement');
const { readTrace } = await part('trace-file');
const { run } = await import(`${PACKING}.mjs`);

const AMOUNTS = ['cpu', 'memory', 'gpu'] as const;

type Amounts = Record<(typeof AMOUNTS)[number], number>;

interface Arrival extends Amounts {
  time: number;
  duration: number;
}

const KUBELET = { policy: 'single-numa-node' };
const [BOTH, ONE, EIGHT] = MACHINES;
const request = (cpu: number, gpu = 0) => ({ cpu, memory: GIB, gpu });

/** Counts CPUs, up to this many. */
class CountingNode {
  readonly #cpus: number;
  readonly held = new Map<string, number>();

  constructor(cpus: number) {
    this.#cpus = cpus;
  }

  get cpusInUse() {
    return [...this.held.values()].reduce((sum, cpus) => sum + cpus, 0);
  }

  get grants() {
    return this.held.size;
  }

  admit({ cpu }: { cpu: number }, uid: string) {
    if (this.cpusInUse + cpu > this.#cpus) return { admitted: false, isFragmented: false };
    this.held.set(uid, cpu);
    return { admitted: true, moves: 0, distance: 10 };
  }

  release(uid: string) {
    this.held.delete(uid);
  }
}

/** The first NUMA node that has room, by amounts alone. */
class FirstFitNode {
  readonly #free: Amounts[];
  readonly #held = new Map<string, { at: Amounts; asked: Amounts }>();
  cpusInUse = 0;

  constructor(machine: object) {
    this.#free = capacities(machine);
  }

  get grants() {
    return this.#held.size;
  }

  admit(asked: Amounts, uid: string) {
    const at = this.#free.find((node) => hasRoom(node, asked));
    if (!at) return { admitted: false, isFragmented: hasRoom(this.#sum(), asked) };
    this.#book(at, asked, 1);
    this.#held.set(uid, { at, asked });
    return { admitted: true, moves: 0, distance: 10 };
  }

  release(uid: string) {
    const { at, asked } = this.#held.get(uid)!;
    this.#book(at, asked, -1);
    this.#held.delete(uid);
  }

  #sum(): Amounts {
    const sum = { cpu: 0, memory: 0, gpu: 0 };
    for (const node of this.#free) for (const name of AMOUNTS) sum[name] += node[name];
    return sum;
  }

  #book(at: Amounts, asked: Amounts, sign: 1 | -1) {
    for (const name of AMOUNTS) at[name] -= sign * asked[name];
    this.cpusInUse += sign * asked.cpu;
  }
}

const ofMix = (load: number, seed: number, machine = BOTH): Arrival[] => [
  ...arrivals({ sizes: mixes[0].sizes, cpus: cpusOf(machine), load, span: 20, seed }),
];

describe('A simulation', () => {
  it('has as many grants as were admitted and have not departed, and the requested CPU time', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...MACHINES),
        fc.constantFrom(...WAYS),
        fc.integer(),
        fc.double({ min: 0.2, max: 3, noNaN: true }),
        fc.double({ min: 0, max: 25, noNaN: true }),
        async (machine, { nodeOf, maxMoves }, seed, load, begin) => {
          const node = await nodeOf(machine);
          const sums = simulate(node, ofMix(load, seed, machine), begin);
          expect(sums.admitted - sums.departed).toBe(sums.present);
          expect(sums.cpuTime).toBeCloseTo(sums.cpuTimeAsked, 6);
          expect(sums.accepted + sums.rejected).toBe(sums.arrivals);
          if (maxMoves < Infinity) expect(sums.moves).toBeLessThanOrEqual(maxMoves * sums.accepted);
          expect(() => checkSums(sums)).not.toThrow();
        },
      ),
      { numRuns: budget({ all: 100, usual: 8 }) },
    );
  });

  it('has only the last grant left long after all others', () => {
    const last = { ...request(1), time: 1000, duration: 1 };
    const sums = simulate(new CountingNode(96), [...ofMix(0.9, 1), last], 0);
    expect(sums.present).toBe(1);
  });

  it('rejects by the Erlang B formula', () => {
    const [servers, erlangs] = [8, 6];
    // Erlang's recursion.
    let blocked = 1;
    for (let n = 1; n <= servers; n++) blocked = (erlangs * blocked) / (n + erlangs * blocked);
    const load = erlangs / servers;
    const rejected = Array.from({ length: 10 }, (_, seed) => {
      const all = [...arrivals({ sizes: [request(1)], cpus: servers, load, span: 1000, seed })];
      const sums = simulate(new CountingNode(servers), all, 10);
      return sums.rejected / sums.arrivals;
    });
    const { mean, plusMinus } = estimate(rejected);
    expect(Math.abs(mean - blocked)).toBeLessThan(2 * plusMinus);
    expect(plusMinus).toBeLessThan(0.01);
  });

  it.each(MACHINES as { name: string }[])(
    'of the kubelet on $name equals first fit by amounts',
    async (machine) => {
      const all = ofMix(0.9, 5, machine);
      const { distance: _, avoidable: __, ...sums } = simulate(await PackedNode.of(machine, KUBELET), all, 2);
      expect(simulate(new FirstFitNode(machine), all, 2)).toMatchObject(sums);
      expect(sums.fragmented).toBeGreaterThan(0);
    },
  );

  it('is contradicted by a node that forgets a departure', () => {
    class Forgetful extends CountingNode {
      override release(uid: string) {
        if (uid !== 'pod-3') super.release(uid);
      }
    }
    const sums = simulate(new Forgetful(96), ofMix(0.9, 1), 0);
    expect(() => checkSums(sums)).toThrow(expect.objectContaining({ code: 'ERR_SIMULATION' }));
  });

  it('is contradicted by a node that gives two grants the same CPU', () => {
    class Overlapping extends CountingNode {
      override get cpusInUse() {
        return super.cpusInUse - (this.held.size > 1 ? 1 : 0);
      }
    }
    const sums = simulate(new Overlapping(96), ofMix(0.9, 1), 0);
    expect(() => checkSums(sums)).toThrow('of CPU time on record');
  });
});

describe('A workload', () => {
  it.each(mixes.map(({ name }: { name: string }) => name) as string[])('%s requests the load', (name) => {
    const { sizes } = mixes.find((mix: { name: string }) => mix.name === name);
    const all: Arrival[] = [...arrivals({ sizes, cpus: 96, load: 0.9, span: 5000, seed: 1 })];
    const cpuTime = all.reduce((sum, { cpu, duration }) => sum + cpu * duration, 0);
    expect(cpuTime / (5000 * 96)).toBeCloseTo(0.9, 1);
  });

  it('is the same for the same seed, and another one for another', () => {
    expect(ofMix(0.9, 1)).toEqual(ofMix(0.9, 1));
    expect(ofMix(0.9, 1)).not.toEqual(ofMix(0.9, 2));
  });

  it('with its own times is scaled to the load', () => {
    const own = ofMix(0.3, 1).map((each) => ({ ...each, time: 100 + each.time, duration: each.duration }));
    const all: Arrival[] = atLoad(own, { cpus: 96, load: 0.9 });
    const cpuTime = all.reduce((sum, { cpu, duration }) => sum + cpu * duration, 0);
    expect(all[0]!.time).toBe(0);
    expect(cpuTime / (96 * all.at(-1)!.time)).toBeCloseTo(0.9, 9);
  });

  it('with simultaneous arrivals has no load', () => {
    expect(() => atLoad([ofMix(0.3, 1)[0]!], { cpus: 96, load: 0.9 })).toThrow(
      expect.objectContaining({ code: 'ERR_TRACE' }),
    );
  });

  it('is cut into parts that make up all of it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer(), { minLength: 1 }),
        fc.integer({ min: 1, max: 20 }),
        (list, count) => {
          const all: number[][] = parts(list, count);
          expect(all.flat()).toEqual(list);
          expect(all.every(({ length }) => length > 0)).toBe(true);
          expect(all.length).toBe(Math.min(count, list.length));
        },
      ),
    );
  });
});

describe('A rejection', () => {
  const filled = async (machine: object, ...requests: object[]) => {
    const node = await PackedNode.of(machine, KUBELET);
    for (const [i, each] of requests.entries())
      expect(node.admit(each, `pod-${i}`)).toMatchObject({ admitted: true });
    return node;
  };

  it('is caused only by fragmentation if enough is free in total', async () => {
    const node = await filled(BOTH, request(25), request(25));
    const scarce = { admitted: false, isFragmented: false, isAvoidable: false };
    expect(node.admit(request(47), 'next')).toEqual(scarce);
    expect(node.admit(request(30), 'next')).toMatchObject({ isFragmented: true, isAvoidable: false });
    expect(node.admit(request(23), 'next')).toMatchObject({ admitted: true });
  });

  it('is avoidable if some arrangement of the grants has room', async () => {
    const node = await filled(BOTH, request(20), request(28), request(10));
    node.release('pod-0');
    expect(node.admit(request(40), 'next')).toMatchObject({ isFragmented: true, isAvoidable: true });
  });

  it('does not happen if the allowed moves make room', async () => {
    const options = { ...KUBELET, placement: 'joint' };
    const moved = async (maxMoves: number) => {
      const node = await PackedNode.of(BOTH, options, maxMoves);
      for (const [i, cpus] of [18, 30, 10, 8, 6].entries()) node.admit(request(cpus), `pod-${i}`);
      node.release('pod-0');
      return node.admit(request(40), 'next');
    };
    expect([await moved(0), await moved(1), await moved(2)]).toMatchObject([
      ...[{ admitted: false, isAvoidable: true }, { admitted: false }],
      { admitted: true, moves: 2 },
    ]);
  });

  it('is not avoidable if grants with GPUs are in the way, which stay', async () => {
    const node = await filled(ONE, request(40, 1));
    expect(node.admit(request(12, 1), 'next')).toMatchObject({ isFragmented: true, isAvoidable: false });
    const free = await filled(ONE, request(40), request(8, 1));
    expect(free.admit(request(12, 1), 'next')).toMatchObject({ isFragmented: true, isAvoidable: true });
  });

  it('is of CPUs that are taken by requests without memory too', async () => {
    const node = await filled(BOTH, { cpu: 40, memory: 0, gpu: 0 }, { cpu: 40, memory: 0, gpu: 0 });
    expect(node.cpusInUse).toBe(80);
    expect(node.admit({ cpu: 9, memory: 0, gpu: 0 }, 'next')).toMatchObject({ isFragmented: true });
  });

  it('is by no fragmentation on a machine of one node', async () => {
    const node = await filled(undivided(EIGHT), request(100), request(20, 8));
    expect(node.admit(request(9), 'next')).toMatchObject({ admitted: false, isFragmented: false });
    expect(node.admit(request(1, 1), 'next')).toMatchObject({ admitted: false, isFragmented: false });
    expect(node.admit(request(8), 'next')).toMatchObject({ admitted: true });
  });
});

describe('A node that is arranged at will', () => {
  it('admits what two moves make room for', () => {
    const node = new ArrangedNode(BOTH);
    for (const [i, cpus] of [18, 30, 10, 8, 6].entries()) node.admit(request(cpus), `pod-${i}`);
    node.release('pod-0');
    expect(node.admit(request(40), 'next')).toMatchObject({ admitted: true });
    expect(node.cpusInUse).toBe(94);
  });

  it('rejects what no arrangement holds, by fragmentation alone', () => {
    const node = new ArrangedNode(BOTH);
    for (const name of ['one', 'other']) node.admit(request(25), name);
    expect(node.admit(request(47), 'next')).toMatchObject({ admitted: false, isFragmented: false });
    const rejection = { admitted: false, isFragmented: true, isAvoidable: false };
    expect(node.admit(request(30), 'next')).toEqual(rejection);
    expect(node.grants).toBe(2);
  });

  it('never moves a grant with GPUs', () => {
    const node = new ArrangedNode(BOTH);
    for (const [i, cpus] of [20, 28, 20].entries()) node.admit(request(cpus, 1), `pod-${i}`);
    node.release('pod-1');
    expect(node.cpusInUse).toBe(40);
    expect(node.admit(request(40), 'next')).toMatchObject({ admitted: false, isFragmented: true });
    expect(node.admit(request(28), 'other')).toMatchObject({ admitted: true });
  });

  it('places a grant with GPUs where all others can be arranged', () => {
    const node = new ArrangedNode(ONE);
    for (const name of ['one', 'other']) node.admit(request(24), name);
    expect(node.admit(request(40, 1), 'gpu')).toMatchObject({ admitted: true });
    expect(node.admit(request(9), 'next')).toMatchObject({ admitted: false });
    expect(node.admit(request(8), 'next')).toMatchObject({ admitted: true });
  });
});

describe('An arrangement', () => {
  const amounts = (most: number) =>
    fc.record({ cpu: fc.integer({ min: 1, max: most }), memory: fc.nat(most), gpu: fc.nat(1) });

  function isPossible(free: Amounts[], requests: Amounts[]): boolean {
    const [first, ...others] = requests;
    if (!first) return true;
    return free.some(
      (node, at) => hasRoom(node, first) && isPossible(free.with(at, less(node, first)), others),
    );
  }

  it('is found if one of all arrangements has room', () => {
    const nodes = fc.array(amounts(12), { minLength: 1, maxLength: 3 });
    const requests = fc.array(amounts(6), { minLength: 1, maxLength: 6 });
    let possible = 0;
    fc.assert(
      fc.property(nodes, requests, (free, asked) => {
        const answer = isPossible(free, asked);
        if (answer) possible++;
        expect(canArrange(free, asked)).toBe(answer);
      }),
      { numRuns: budget({ all: 5_000, usual: 2_000 }) },
    );
    expect(possible).toBeGreaterThan(100);
  });

  it('that takes too long is unknown', () => {
    expect(canArrange([request(9), request(9)], [request(5), request(5), request(4)], 1)).toBeUndefined();
  });
});

describe('An estimate', () => {
  it('has the interval of Student’s t', () => {
    const { mean, plusMinus } = estimate([1, 2, 3, 4, 5]);
    expect(mean).toBe(3);
    expect(plusMinus).toBeCloseTo(2.776 * Math.sqrt(2.5 / 5), 9);
  });

  it('of one sample has none, and of none there is none', () => {
    expect(estimate([7])).toEqual({ mean: 7 });
    expect(estimate([Number.NaN])).toBeUndefined();
  });
});

describe('A trace', () => {
  const traceOf = (...lines: string[]) => {
    const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'trace.csv');
    writeFileSync(path, lines.join('\n'));
    return path;
  };

  it('is read in the order of its times, CPUs as whole ones', () => {
    const path = traceOf('duration,arrival,cpu,memory,gpu', '5,20,3152m,1Gi,1', '', '7,10.5,2,0,0');
    expect(readTrace(path)).toEqual([
      { cpu: 2, memory: 0, gpu: 0, time: 10.5, duration: 7 },
      { cpu: 4, memory: GIB, gpu: 1, time: 20, duration: 5 },
    ]);
  });

  it('may have only sizes', () => {
    expect(readTrace(traceOf('cpu', '2'))).toEqual([{ cpu: 2, memory: 0, gpu: 0 }]);
  });

  it.each([
    ['an unknown column', ['cpu,disk', '1,2'], 'ERR_TRACE', 'column "disk"'],
    ['a column twice', ['cpu,cpu', '1,2'], 'ERR_TRACE', 'column "cpu"'],
    ['no CPUs', ['memory', '1Gi'], 'ERR_TRACE', 'no column cpu'],
    ['one of the times', ['cpu,arrival', '1,2'], 'ERR_TRACE', 'both arrival and duration'],
    ['a cell too few', ['cpu,memory', '1'], 'ERR_TRACE', ':2: 1 columns'],
    ['a time that is none', ['cpu,arrival,duration', '1,,2'], 'ERR_TRACE', ':2: arrival: ""'],
    ['no CPU asked for', ['cpu', '0'], 'ERR_TRACE', 'above 0'],
    ['a negative amount', ['cpu,gpu', '1,-1'], 'ERR_TRACE', 'gpu -1'],
    ['no requests', ['cpu'], 'ERR_TRACE', 'no requests'],
    ['no quantity', ['cpu', 'many'], 'ERR_INVALID_QUANTITY', ':2: cpu'],
  ])('with %s is refused', (_, lines, code, said) => {
    expect(() => readTrace(traceOf(...lines))).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(said) }),
    );
  });
});

describe('An order of the scenario', () => {
  it.each([
    [{ load: '0.9,much' }, '--load 0.9,much'],
    [{ load: '0' }, '--load 0'],
    [{ seeds: '1.5' }, '--seeds 1.5'],
  ])('%o is refused', async (order, said) => {
    const error = expect.objectContaining({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringContaining(said),
    });
    await expect(run(order)).rejects.toThrow(error);
  });
});
