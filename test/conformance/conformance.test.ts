// needs: nothing
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { isLong } from '../support/budget.mjs';
import * as numalign from '../support/package.js';
import type { Case, Numalign, Result } from './case.js';
import { contextOf, readLines } from './read.js';
import { readCases, replay } from './replay.js';
import { fileOf, outcomeOf, run, vectors } from './support/cases.js';

// A case takes half a second.
const PARTS = 32;

const root = fileURLToPath(new URL('../..', import.meta.url));

type BestFit = numalign.Topology['bestFit'];

function brokenGzip() {
  const path = fileOf([]);
  writeFileSync(path, gzipSync('{}').subarray(0, 12));
  return path;
}

/** The package with another bestFit in it, which gets the true one. */
function withBestFit(replaced: (bestFit: BestFit, ...args: Parameters<BestFit>) => unknown): Numalign {
  const discover = async (options?: numalign.DiscoverOptions) => {
    const topology = await numalign.discover(options);
    const bestFit = (...args: Parameters<BestFit>) =>
      replaced((...inner) => topology.bestFit(...inner), ...args);
    return { bestFit } as unknown as numalign.Topology;
  };
  return { ...numalign, discover };
}

const answering = (cpus: string) => withBestFit(() => cpus);
const throwing = (error: Error) =>
  withBestFit(() => {
    throw error;
  });

const SCENARIO: [string, number, Record<string, number>] = [
  'scenario',
  480,
  { A1: 9, A4: 12, A6: 4, B: 30, D1: 43, D9: 1 },
];

const NEWER_SCENARIO: typeof SCENARIO = [
  'newer/scenario-136',
  287,
  { A1: 15, A4: 9, A6: 1, B: 23, D1: 5, F1: 8, F3: 3, P1: 10, P2: 28, P3: 10, P4: 39 },
];

/** Cases of the older kubelet, as if the newer one had been asked. */
const asNewer = (vector: Case): Case => ({ ...vector, id: vector.id.replace('-', '136-') });

describe('the recorded cases', () => {
  it.each<[string, number, Record<string, number>]>([
    // The unsafe answers upstream gives on irregular machines are all among the A1: a lower number
    // would mean that one came back.
    ['cpu-take', 5000, { A1: 102, A2: 60, A3: 16 }],
    ['cpuset', 200, {}],
    ['bitmask', 200, {}],
    ['hint-merge', 3200, {}],
    ['cpu-hints', 1200, { A4: 27, D4: 6 }],
    ['checkpoint', 240, { D10: 3, D13: 5 }],
    ['newer/cpu-take-136', 1050, { A1: 106, A2: 1, F1: 16 }],
    ['newer/checkpoint-136', 120, { D10: 2, D13: 5, F2: 8 }],
    ...(isLong ? [SCENARIO, NEWER_SCENARIO] : []),
  ])(
    'of %s are answered as recorded, but where numalign differs on purpose',
    async (name, total, letters) => {
      const report = await replay(readCases(vectors(name))!, numalign);
      expect(report.failures).toEqual([]);
      expect(report.letters).toEqual(letters);
      expect(report.passed + report.diverged).toBe(total);
    },
  );

  it('that were found later are answered as intended', async () => {
    const take = await replay(readCases(vectors('found/cpu-take'))!, numalign);
    expect(take).toMatchObject({ passed: 2, failures: [] });
    const { failures, letters } = await replay(readCases(vectors('found/scenario'))!, numalign);
    expect(failures).toEqual([]);
    expect(letters).toEqual({ D1: 1, D9: 1, D11: 1 });
  });

  it.runIf(isLong).each<[string, number, Record<string, number>]>([
    ['more/irr/scenario-136', 78, { A1: 20, A4: 6, A6: 2, B: 4, D1: 6, D9: 1, F1: 1, T1: 3 }],
    ['more/mem/scenario-136', 91, { A1: 2, A4: 1, A5: 1, B: 11, D1: 27, D9: 1, F3: 1, T1: 1 }],
    ['more/plr/scenario-136', 97, { A6: 1, B: 2, D1: 9, F3: 1, P1: 2, P2: 25, P3: 2, P4: 8, T1: 2 }],
    ['found/newer/scenario-136', 8, { A1: 2, A4: 1, A5: 1, D1: 1, F1: 2, G1: 1 }],
  ])('of longer scenarios in %s are answered as recorded, but for letters', async (name, total, expected) => {
    const { failures, letters, passed, diverged } = await replay(readCases(vectors(name))!, numalign);
    expect(failures).toEqual([]);
    expect(letters).toEqual(expected);
    expect(passed + diverged).toBe(total);
  });

  // All of them: `npm run conformance`, which .ci/run runs, and in a long run above.
  it.each(['scenario', 'newer/scenario-136'])(
    'of %s are answered as recorded, a part of them, another one in each run',
    async (name) => {
      const file = readCases(vectors(name))!;
      const part = randomInt(PARTS);
      const cases = file.cases.filter((_, i) => i % PARTS === part);
      const { failures, passed, diverged } = await replay({ ...file, cases }, numalign);
      expect(failures).toEqual([]);
      expect(passed + diverged).toBe(cases.length);
      expect(cases.length).toBeGreaterThan(8);
    },
  );

  it('of takes and hints of 1.32 are those of 1.36 too, but for the changes that are recorded', async () => {
    const changes = new Map(
      readLines(vectors('newer/changes-132-136'))
        .map(({ value }) => value as any)
        .filter(({ file }) => file === 'cpu-take')
        .map(({ id, answer132, answer136 }) => [id, { answer132, answer136 }] as const),
    );
    expect(changes.size).toBe(69);
    const file = readCases(vectors('cpu-take'))!;
    const cases = file.cases.map((vector) => {
      const change = changes.get(vector.id);
      if (!change) return asNewer(vector);
      const { cpus: _, error: __, hang: ___, panic: ____, ...asked } = vector;
      expect(vector).toMatchObject(change.answer132);
      return asNewer({ ...asked, ...change.answer136 } as Case);
    });
    const { failures, letters } = await replay({ ...file, cases }, numalign);
    expect(failures).toEqual([]);
    expect(letters.F1).toBeGreaterThan(0);
    expect(letters.F1).toBeLessThan(changes.size);
  });

  // Alters one recorded value so that it is surely another one.
  function altered(value: unknown): unknown {
    if (typeof value === 'boolean') return !value;
    if (typeof value === 'number') return value + 1;
    if (typeof value === 'string') return value === '' ? '0' : '';
    return (value as unknown[]).length === 0 ? [0] : [];
  }

  it.each<[string, string[]]>([
    ['cpuset', ['id', 'op', 'input', 'a', 'b', 'error']],
    ['bitmask', ['id', 'op', 'bits', 'a', 'b', 'remove', 'query', 'error']],
  ])('of %s fail if any of their answers is altered', async (name, inputs) => {
    const file = readCases(vectors(name))!;
    const context = contextOf(file.path, numalign);
    const notNoticed: string[] = [];
    const check = async (vector: Case, field: string) => {
      if ((await file.kind.run(vector, context)).outcome !== 'failed')
        notNoticed.push(`${vector.id} ${field}`);
    };
    for (const vector of file.cases) {
      // Nodes of 64 and more are not compared.
      if (Object.values(vector).some((value) => Array.isArray(value) && value.some((node) => node >= 64)))
        continue;
      const answers = Object.keys(vector).filter((field) => !inputs.includes(field));
      for (const field of answers) await check({ ...vector, [field]: altered(vector[field]) }, field);
      // Sets are never refused, only their texts are.
      if (vector.op === 'setops') continue;
      const { error, ...asked } = vector;
      const opposite =
        error === undefined ? { ...vector, error: 'refused' } : { ...asked, result: [63], list: [63] };
      await check(opposite as unknown as Case, 'error');
    }
    expect(notNoticed).toEqual([]);
  });

  it('of cpu-take fail on every regular machine where their answer is altered', async () => {
    const file = readCases(vectors('cpu-take'))!;
    const context = contextOf(file.path, numalign);
    const irregular = ['2s-6c2t-offline', 'uneven-numa', 'hybrid-8p8e', 'harvested-l3'];
    const notNoticed: string[] = [];
    for (const vector of file.cases) {
      if (vector.hang || irregular.includes(vector.topology as string)) continue;
      const { error, cpus, aliasingAffected, withoutAliasing, ...asked } = vector;
      for (const answer of [error === undefined && { error: 'not enough cpus available' }, { cpus: '600' }]) {
        if (!answer) continue;
        const result: Result = await file.kind.run({ ...asked, ...answer } as unknown as Case, context);
        if (result.outcome !== 'failed') notNoticed.push(vector.id);
      }
    }
    expect(notNoticed).toEqual([]);
  });

  it.each<[string, Parameters<typeof withBestFit>[0]]>([
    [
      'ignores the spread',
      (bestFit, free, n, options) => bestFit(free, n, { ...options, strategy: 'packed' }),
    ],
    [
      'ignores the group size',
      (bestFit, free, n, options) => bestFit(free, n, { ...options, cpuGroupSize: 1 }),
    ],
    [
      'ignores L3',
      (bestFit, free, n, options) => bestFit(free, n, { ...options, preferAlignByUncoreCache: false }),
    ],
    [
      'does not distribute',
      (bestFit, free, n, options) => bestFit(free, n, { ...options, distributeAcrossNuma: false }),
    ],
    [
      'takes the first CPUs',
      (bestFit, free, n) => bestFit(free, n) && [...numalign.CpuSet.coerce(free)].slice(0, n),
    ],
    ['gives a CPU too few', (bestFit, free, n, options) => bestFit(free, n && n - 1, options)],
    [
      'gives whatever is left',
      (bestFit, free, n) => bestFit(free, Math.min(n, numalign.CpuSet.coerce(free).size)),
    ],
  ])('of cpu-take fail with a package that %s', async (_, replaced) => {
    const { failures } = await replay(readCases(vectors('cpu-take'))!, withBestFit(replaced), undefined, 21);
    expect(failures.length).toBeGreaterThan(20);
  });
});

describe('a cpu-take case', () => {
  // uma-8c: eight cores of one thread. hybrid-8p8e: CPUs 0-15 are pairs, 16-23 are single.
  const regular = { topology: 'uma-8c', available: '0-7', count: 2, options: {} };
  const irregular = { topology: 'hybrid-8p8e', available: '1-23', count: 2, options: {} };
  const tooFew = 'not enough cpus available to satisfy request: requested=9, available=8';
  const shortage = new numalign.NumalignError('ERR_INSUFFICIENT_CPUS', 'too few');

  it('passes with the recorded CPUs and fails with others on a regular machine', async () => {
    expect(await outcomeOf({ ...regular, cpus: '0-1' })).toBe('passed');
    expect(await outcomeOf({ ...regular, cpus: '0,2' })).toBe('failed');
  });

  it('with a shortage passes only with the error of a shortage', async () => {
    const vector = { ...regular, count: 9, error: tooFew };
    expect(await outcomeOf(vector)).toBe('passed');
    expect(await outcomeOf(vector, answering('0-7'))).toBe('failed');
    expect(await outcomeOf(vector, throwing(new TypeError('no')))).toBe('failed');
    expect(await outcomeOf(vector, throwing(new numalign.NumalignError('ERR_INVALID_ARGUMENT', 'no')))).toBe(
      'failed',
    );
    expect(await outcomeOf({ ...regular, cpus: '0-1' }, throwing(shortage))).toBe('failed');
  });

  it('counts as A1 on an irregular machine, if the answer is as many CPUs as asked for, all of them free', async () => {
    const vector = { ...irregular, cpus: '0-1', takesUnavailable: '0' };
    expect(await outcomeOf(vector, answering('16-17'))).toBe('A1');
    expect(await outcomeOf({ ...irregular, panic: 'index out of range' }, answering('16-17'))).toBe('A1');
    // Not what the own sizes of cores lead to, and not what averages do.
    expect(await outcomeOf({ ...vector, cpus: '16,18' }, answering('16-17'))).toBe('failed');
    for (const wrong of ['2-3', '0,2', '2', '2-4', '24-25', ''])
      expect(await outcomeOf(vector, answering(wrong))).toBe('failed');
    expect(await outcomeOf(vector, throwing(shortage))).toBe('failed');
    expect(await outcomeOf({ ...regular, cpus: '0-1' }, answering('2-3'))).toBe('failed');
    expect(await outcomeOf({ ...regular, panic: 'index out of range' })).toBe('failed');
    expect(await outcomeOf({ ...irregular, count: 30, error: tooFew }, answering('1-23'))).toBe('failed');
  });

  it('aligned by L3 counts as A1 on as many groups as recorded, and fails on more', async () => {
    const options = { preferAlignByUncoreCache: true };
    const vector = { topology: 'harvested-l3', available: '0-57', count: 16, options };
    expect(await outcomeOf({ ...vector, cpus: '16-31' })).toBe('A1');
    expect(await outcomeOf({ ...vector, cpus: '16-31' }, answering('20-35'))).toBe('A1');
    expect(await outcomeOf({ ...vector, cpus: '16-31' }, answering('14-29'))).toBe('failed');
  });

  it('counts as A2 with the answer without aliasing, passes with the recorded one, and fails with a third', async () => {
    const vector = { ...regular, cpus: '4-5', aliasingAffected: true, withoutAliasing: { cpus: '6-7' } };
    expect(await outcomeOf(vector, answering('6-7'))).toBe('A2');
    expect(await outcomeOf(vector, answering('4-5'))).toBe('passed');
    expect(await outcomeOf(vector, answering('0-1'))).toBe('failed');
    expect(await outcomeOf({ ...vector, aliasingAffected: false }, answering('6-7'))).toBe('failed');
    expect(await outcomeOf({ ...vector, available: '0-6' }, answering('6-7'))).toBe('failed');
  });

  it('counts as A3 where upstream hangs, with a valid placement or the error of a shortage', async () => {
    const vector = { ...regular, hang: true };
    expect(await outcomeOf(vector)).toBe('A3');
    expect(await outcomeOf(vector, throwing(shortage))).toBe('A3');
    for (const wrong of ['0', '0-2', '7-8']) expect(await outcomeOf(vector, answering(wrong))).toBe('failed');
    expect(await outcomeOf(vector, throwing(new TypeError('no')))).toBe('failed');
  });

  it('fails where the machine is not among the topologies', async () => {
    const { code, printed } = await run(fileOf([{ id: 'x', ...regular, topology: 'nowhere', cpus: '0-1' }]));
    expect(code).toBe(1);
    expect(printed[0]).toMatch(/^cases\.jsonl: x: expected .*, got Error \(no machine .* "nowhere"\)$/);
  });
});

describe('a cpuset case', () => {
  it('counts as D12 where upstream reads a range that ends at -0 by accident', async () => {
    const vector = { op: 'parse', input: '0--0', list: [0], formatted: '0' };
    expect(await outcomeOf(vector)).toBe('D12');
    expect(await outcomeOf({ ...vector, input: '0--1' })).toBe('failed');
    expect(await outcomeOf({ ...vector, input: '0-0' })).toBe('passed');
  });
});

describe('a bitmask case', () => {
  it('of nodes above 63 is not compared, but must not crash', async () => {
    const vector = { op: 'new', bits: [64], error: 'bit number must be in range 0-63' };
    expect(await outcomeOf(vector)).toBe('passed');
    const crash = () => {
      throw new TypeError('no');
    };
    expect(
      await outcomeOf(vector, { ...numalign, NodeSet: { from: crash } as unknown as Numalign['NodeSet'] }),
    ).toBe('failed');
  });
});

describe('npm run conformance', () => {
  beforeAll(() => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const compiled = spawnSync(process.execPath, [tsc, '-p', 'test/conformance'], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(compiled.stdout + compiled.stderr).toBe('');
  });

  function program(...paths: string[]) {
    const script = join(root, 'dist-test/conformance/run.js');
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...paths], {
      cwd: root,
      encoding: 'utf8',
    });
    return { status, lines: stdout.trimEnd().split('\n'), stderr };
  }

  const right = (i: number) => ({
    id: `c${i}`,
    topology: 'uma-8c',
    available: '0-7',
    count: 1,
    cpus: '0',
    options: {},
  });
  const wrong = (i: number) => ({ ...right(i), cpus: '7' });
  const hang = (i: number) => ({ id: `h${i}`, topology: 'uma-8c', available: '0-7', count: 1, hang: true });

  it('is ended, with the name of the case, where one has no answer for too long', () => {
    const script = `
      const { watch } = await import(${JSON.stringify(join(root, 'dist-test/conformance/watchdog.js'))});
      const onCase = watch(0.5);
      onCase('quick');
      onCase('endless');
      for (;;);
    `;
    const options = { encoding: 'utf8', timeout: 120_000 } as const;
    const { signal, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], options);
    expect(stderr).toBe('endless: no answer after 0.5 seconds\n');
    expect(signal).toBe('SIGKILL');
  });

  it('adds up the files, counts the diverged by letter and ends with 0 where nothing failed', () => {
    const { status, lines, stderr } = program(
      fileOf([right(1), hang(1)], { name: 'other-name.jsonl.gz' }),
      vectors('cpuset'),
    );
    expect(stderr).toBe('');
    expect(lines).toEqual([
      'other-name.jsonl.gz: cpu-take: 1 passed, 0 failed, 1 diverged',
      'cpuset.jsonl.gz: cpuset: 200 passed, 0 failed, 0 diverged',
      'diverged by A3: 1',
      '201 passed, 0 failed, 1 diverged',
    ]);
    expect(status).toBe(0);
  });

  it('shows the first 20 failures, says how many more there are and ends with 1', () => {
    const { status, lines } = program(fileOf(Array.from({ length: 23 }, (_, i) => wrong(i))));
    expect(lines).toHaveLength(23);
    expect(lines[0]).toBe('cases.jsonl: c0: expected CPUs "7", got CPUs "0"');
    expect(lines[19]).toMatch(/: c19: /);
    expect(lines.slice(20)).toEqual([
      'cases.jsonl: and 3 more',
      'cases.jsonl: cpu-take: 0 passed, 23 failed, 0 diverged',
      '0 passed, 23 failed, 0 diverged',
    ]);
    expect(status).toBe(1);
  });

  it('goes on past a file of machines', () => {
    const { status, lines, stderr } = program(vectors('topologies'), vectors('bitmask'));
    expect(stderr).toBe('');
    expect(lines).toEqual([
      'topologies.jsonl.gz: machines, no cases',
      'bitmask.jsonl.gz: bitmask: 200 passed, 0 failed, 0 diverged',
      '200 passed, 0 failed, 0 diverged',
    ]);
    expect(status).toBe(0);
  });

  it.each<[string, () => string[], RegExp]>([
    ['no file', () => [], /^no file given\nusage: /],
    ['an option', () => ['--all'], /^unknown option --all\nusage: /],
    [
      'a file that cannot be read',
      () => ['/nonexistent.jsonl'],
      /^\/nonexistent\.jsonl: cannot be read: ENOENT/,
    ],
    ['a gzip file that was cut off', () => [brokenGzip()], /cases\.jsonl: cannot be read: /],
    ['a line that is not JSON', () => [fileOf([right(1), '', '{"id":'])], /: line 3 is not JSON: /],
    ['a line that is no object', () => [fileOf([right(1), '[]'])], /: line 2 is not an object\n$/],
    ['a case without an id', () => [fileOf([{ ...right(1), id: undefined }])], /: line 1 has no id\n$/],
    ['an id that comes twice', () => [fileOf([right(1), right(1)])], /: line 2 repeats the id c1\n$/],
    [
      'a case of no known kind',
      () => [fileOf([{ id: 'x', op: 'guess' }])],
      /: line 1 is not a case of any known kind\n$/,
    ],
    [
      'cases of two kinds',
      () => [fileOf([right(1), { id: 'x', op: 'parse', input: '' }])],
      /: line 2 is not .* cpu-take\n$/,
    ],
    [
      'a case without an answer',
      () => [fileOf([{ ...right(1), cpus: undefined }])],
      /: line 1 is not a case of any known/,
    ],
    ['a file without cases', () => [fileOf([])], /: holds no cases\n$/],
    [
      'no topologies',
      () => [fileOf([right(1)], { topologies: null })],
      /: there is no topologies\.jsonl or /,
    ],
    [
      'broken topologies',
      () => [fileOf([right(1)], { topologies: '{}' })],
      /topologies\.jsonl: line 1 is not a machine\n$/,
    ],
  ])('ends with 2 and says why, given %s', (_, paths, message) => {
    const { status, lines, stderr } = program(...paths());
    expect(stderr).toMatch(message);
    expect(lines).toEqual(['']);
    expect(status).toBe(2);
  });
});
