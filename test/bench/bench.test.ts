// needs: documents
// The benchmarks' program: its options, its output, and that one damaged input does not affect
// others. Not how fast anything is.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// They are JavaScript, without types.
const support = (name: string): Promise<any> => import(`${ROOT}bench/support/${name}.mjs`);
const { medianOf, quantile, spread } = await support('measure');
const { inMarkdown, tablesOf } = await support('tables');
const { duration } = await support('units');
const { judged, TARGETS, unmeasuredRows } = await support('targets');
const { growthExponent } = await support('growth-exponent');
const { comparison } = await support('comparison');
const { pageOf, sectionOf } = await support('document');
const { percentilePicture } = await import(`${ROOT}bench/latency/percentile-picture.mjs`);
const { callsOf, callsUntilEnd } = await support('strace-text');
const { leaveSettingsOut } = await support('settings');
const { memoriesOf, pairsOf } = await import(`${ROOT}bench/locality.mjs`);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const bench = (...args: string[]) => benchWith({}, ...args);

function benchWith(env: NodeJS.ProcessEnv, ...args: string[]) {
  return spawnSync(process.execPath, ['--expose-gc', 'bench/run.mjs', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    // The figures do not matter.
    env: { ...process.env, NUMALIGN_BENCH_ROUNDS: '2', ...env },
  });
}

/** One of bench/inputs by its name. */
function ownInput(name: string): unknown {
  const text = gunzipSync(readFileSync(`${ROOT}bench/inputs/inputs.jsonl.gz`)).toString();
  const lines = text.trim().split('\n');
  return lines.map((line) => JSON.parse(line)).find((line) => line.name === name).input;
}

describe('A folder of inputs', () => {
  it('is measured by name, and a damaged one is reported with a code', () => {
    const good = 'cpu-take-packed-2s128-2';
    writeFileSync(join(folder, `${good}.json.gz`), gzipSync(JSON.stringify(ownInput(good))));
    writeFileSync(join(folder, 'a-cut.json'), '{"bench": "cpu-take", ');
    writeFileSync(join(folder, 'of-another-kind.json'), '{"bench": "constructor"}');
    const file = join(folder, 'rows');
    const { status } = bench('--inputs', folder, '--json', file);
    expect(status).toBe(1);
    const { rows } = JSON.parse(readFileSync(file, 'utf8'));
    expect(rows.map(({ name, code }: { name: string; code?: string }) => [name, code])).toEqual([
      ['a-cut', 'ERR_INPUT'],
      [good, undefined],
      ['of-another-kind', 'ERR_INPUT'],
    ]);
    const [, row] = rows;
    expect(row).toMatchObject({ scenario: 'inputs', yardstick: 'E' });
    for (const member of ['medianNs', 'p99Ns', 'samples', 'yardstickNs', 'ratio', 'bytes', 'kubeletPart'])
      expect(row[member]).toBeGreaterThan(0);
  });

  it('has no part of the kubelet if the input of that name is another one', () => {
    const name = 'cpu-take-packed-2s128-2';
    writeFileSync(join(folder, `${name}.json`), JSON.stringify({ ...(ownInput(name) as object), count: 3 }));
    const file = join(folder, 'rows');
    expect(bench('--inputs', folder, '--json', file).status).toBe(0);
    const [row] = JSON.parse(readFileSync(file, 'utf8')).rows;
    expect(row.medianNs).toBeGreaterThan(0);
    expect(row).not.toHaveProperty('kubeletPart');
  });

  it('must exist', () => {
    const { status, stderr } = bench('--inputs', join(folder, 'none'));
    expect(status).toBe(2);
    expect(stderr).toContain('there is no such folder');
  });
});

describe('A package', () => {
  it('that is named is measured, and fails alone', () => {
    mkdirSync(join(folder, 'dist'));
    writeFileSync(join(folder, 'dist/index.js'), 'export {};');
    const file = join(folder, 'rows');
    const args = ['take', '--check', '--turns', '1', '--package', folder, '--package', ROOT];
    const { status, stdout, stderr } = bench(...args, '--json', file);
    expect(status).toBe(1);
    expect(stderr).toContain('take: ERR_SCENARIO');
    expect(stdout).toContain('cpu-take-packed-2s128-2');
    const [{ scenario, rows }] = JSON.parse(readFileSync(file, 'utf8')).all;
    expect(scenario).toBe('take');
    expect(rows[basename(folder)]).toMatchObject([[{ name: 'take', code: 'ERR_SCENARIO' }]]);
    expect(rows[basename(ROOT)][0].map(({ name }: { name: string }) => name)).toContain(
      'cpu-take-packed-2s128-2',
    );
  });
});

describe('A name', () => {
  it('that is neither a scenario nor an input is refused with the valid ones', () => {
    const { status, stderr } = bench('tkae');
    expect(status).toBe(2);
    for (const valid of ['no scenario and no input tkae', 'isolation', 'merge', 'hint-merge-n8-r4-k4']) {
      expect(stderr).toContain(valid);
    }
  });
});

describe('An option', () => {
  it.each([
    ['that is unknown', ['--jsno', 'x'], '--jsno'],
    ['--package without a build', ['take', '--package', '/nonexistent'], '--package /nonexistent'],
    ['--package of a name twice', ['take', '--package', '.', '--package', '.'], 'another one is called'],
    ['--turns that is no number', ['take', '--package', '.', '--turns', 'some'], '--turns some'],
    ['--docs of some scenarios', ['take', '--docs', 'docs/a.md'], '--docs covers everything'],
    ['--docs of a check', ['--check', '--docs', 'docs/a.md'], '--docs does not go with --check'],
    ['--docs of a package', ['--package', '.', '--docs', 'docs/a.md'], '--docs does not go with --package'],
    ['--docs of a folder of inputs', ['--inputs', '.', '--docs', 'a'], '--docs does not go with --inputs'],
    ['--docs in no folder', ['--docs', '/nonexistent/a.md'], '--docs /nonexistent/a.md: its folder'],
    ['--check of a scenario without targets', ['--check', 'take', 'reads'], 'not of reads; these: bystander'],
    ['--check of an input', ['--check', 'hint-merge-n8-r4-k4'], '--check and --package are of scenarios'],
  ])('%s is refused', (_, args, said) => {
    const { status, stderr } = bench(...args);
    expect(status).toBe(2);
    expect(stderr).toContain(said);
  });
});

describe('The environment', () => {
  it('of what is measured lacks the settings of Node, and nothing else', () => {
    const env = { PATH: '/bin', NODE_OPTIONS: '', NODE_EXTRA_CA_CERTS: '/certs', UV_THREADPOOL_SIZE: '9' };
    const others = { MY_NODE_ENV: 'x', NUMALIGN_BENCH_ROUNDS: '2' };
    const all = { ...env, ...others };
    leaveSettingsOut(all);
    expect(all).toEqual({ PATH: '/bin', ...others });
  });

  it('is that of every program that the benchmarks start', () => {
    const preload = join(folder, 'preload.cjs');
    const log = join(folder, 'started');
    writeFileSync(
      preload,
      `require('node:fs').appendFileSync(${JSON.stringify(log)}, process.argv[1] + '\\n')`,
    );
    mkdirSync(join(folder, 'dist'));
    writeFileSync(join(folder, 'dist/index.js'), 'export {};');
    const args = ['take', '--check', '--turns', '1', '--package', folder];
    // It starts a program for each package.
    const { stderr } = benchWith({ NODE_OPTIONS: `--require ${preload}` }, ...args);
    expect(stderr).toContain('take: ERR_SCENARIO');
    // Only of the first.
    expect(readFileSync(log, 'utf8')).toBe(`${ROOT}bench/run.mjs\n`);
  });
});

describe('The growth exponent', () => {
  it('is that of a power law, whatever its factor', () => {
    const sizes = fc.uniqueArray(fc.integer({ min: 1, max: 5000 }), { minLength: 2, maxLength: 12 });
    const exponents = fc.double({ min: -3, max: 3, noNaN: true });
    const factors = fc.double({ min: 1e-3, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(sizes, exponents, factors, (all, exponent, factor) => {
        const points = all.map((n) => [n, factor * n ** exponent]);
        expect(growthExponent(points)).toBeCloseTo(exponent, 6);
      }),
    );
  });

  it('lies between the exponents of two laws that meet', () => {
    const points = [1, 10, 100, 1000].map((n) => [n, Math.max(100, n)]);
    expect(growthExponent(points)).toBeCloseTo(0.3, 9);
  });
});

describe('A target', () => {
  const targets = { scene: { row: { ratio: 2, calls: 90 } } };
  const judge = (row: object, isTolerant = false) => judged('scene', row, { targets, isTolerant });

  it('is met by what is as large, and missed by what is larger', () => {
    expect(judge({ name: 'row', ratio: 2, calls: 90 })).toMatchObject({ met: true });
    expect(judge({ name: 'row', ratio: 2.001, calls: 90 })).toMatchObject({ met: false, missed: ['ratio'] });
    expect(judge({ name: 'row', ratio: 0.1, calls: 91 })).toMatchObject({ met: false, missed: ['calls'] });
  });

  it('is missed by what was not measured', () => {
    expect(judge({ name: 'row', ratio: 1 })).toMatchObject({ met: false, missed: ['calls'] });
    expect(judge({ name: 'row', ratio: Number.NaN, calls: 1 })).toMatchObject({ missed: ['ratio'] });
  });

  it('is met by a little more in a check, except for counts', () => {
    expect(judge({ name: 'row', ratio: 2.5, calls: 90 }, true)).toMatchObject({ met: true });
    expect(judge({ name: 'row', ratio: 2.51, calls: 91 }, true)).toMatchObject({
      missed: ['ratio', 'calls'],
    });
  });

  it('is a minimum if it says so, for the mean of an estimate', () => {
    const atLeast = { scene: { row: { gainShare: { least: 0.03 } } } };
    const gain = (mean: number) =>
      judged('scene', { name: 'row', gainShare: { mean, plusMinus: 1 } }, { targets: atLeast });
    expect(gain(0.03)).toMatchObject({ met: true });
    expect(gain(0.029)).toMatchObject({ met: false, missed: ['gainShare'] });
    expect(judged('scene', { name: 'row' }, { targets: atLeast })).toMatchObject({ met: false });
  });

  it('of several is named in the table where it is missed', () => {
    const metOf = (row: object) => {
      const [{ titles, cells }] = tablesOf([judge({ name: 'row', ...row })]);
      return cells[0][titles.indexOf('met')];
    };
    expect(metOf({ ratio: 2, calls: 90 })).toBe('yes');
    expect(metOf({ ratio: 3, calls: 91 })).toBe('NO: ratio, calls');
  });

  it('judges no other row, none that failed and none that was skipped', () => {
    for (const row of [
      { name: 'other', ratio: 9 },
      { name: 'row', code: 'ERR_SCENARIO' },
      { name: 'row', skipped: 'there is no strace' },
    ]) {
      expect(judge(row)).toEqual(row);
    }
  });

  it('without a row is reported, unless the scenario was skipped', () => {
    expect(unmeasuredRows('scene', [{ name: 'other' }], targets)).toEqual(['row']);
    expect(unmeasuredRows('scene', [{ name: 'row' }], targets)).toEqual([]);
    expect(unmeasuredRows('scene', [{ name: 'all', skipped: 'why' }], targets)).toEqual([]);
  });

  it('belongs to an existing scenario', () => {
    for (const scenario of Object.keys(TARGETS))
      expect([scenario, existsSync(`${ROOT}bench/${scenario}.mjs`)]).toEqual([scenario, true]);
  });
});

describe('The page of figures', () => {
  const page = readFileSync(`${ROOT}docs/reference/benchmarks.md`, 'utf8');
  const sections = page.split('\n## ').slice(1);

  it('says in its first line that it is generated, then where it was measured, then each scenario', () => {
    const tables = tablesOf([{ name: 'row', calls: 3 }]);
    const scenario = { description: 'calls', explanation: '\nOf the kernel.' };
    const made: string = pageOf('a day', [sectionOf('a', scenario, tables), sectionOf('b', scenario, [])]);
    expect(made.split('\n')[0]).toBe(
      '<!-- Generated by `npm run bench:docs` from the scenarios in bench/. Do not edit. -->',
    );
    const [, rest] = made.split('Measured on a day.\n\n');
    const table = '| name | calls |\n| --- | --- |\n| row | 3 |';
    const head = 'Measures calls.\n\nOf the kernel.\n';
    expect(rest).toBe(`## a\n\n${head}\n${table}\n\n## b\n\n${head}`);
  });

  it('of this package has sections of scenarios, with the texts of their files', async () => {
    expect(sections.length).toBeGreaterThan(20);
    const [head] = pageOf('', []).split('Measured on');
    expect(page.startsWith(head!)).toBe(true);
    for (const section of sections) {
      const [name] = section.split('\n', 1);
      const scenario = await import(`${ROOT}bench/${name}.mjs`);
      expect(`## ${section}`).toContain(sectionOf(name, scenario, []));
    }
  });
});

describe('A comparison', () => {
  it('has the least of all turns for each build, and how much less the last is', () => {
    const row = (medianNs: number, ratio: number) => [{ name: 'row', medianNs, ratio }];
    const rows = [
      [row(900, 9), row(800, 10)],
      [row(400, 4), row(500, 2)],
    ];
    expect(comparison('scene', rows, ['old', 'new'], { scene: { row: { ratio: 3 } } })).toEqual([
      { name: 'row', figure: 'median', old: '800 ns', new: '400 ns', change: '2 times less' },
      { name: 'row', figure: 'ratio', old: '9', new: '2', change: '4.5 times less', goal: '<= 3' },
    ]);
  });

  it('has the most of all turns where a target is a minimum', () => {
    const row = (fairness: number) => [{ name: 'row', fairness }];
    const rows = [[row(0.5), row(0.25)], [row(0.4)]];
    const targets = { scene: { row: { fairness: { least: 0.7 } } } };
    expect(comparison('scene', rows, ['old', 'new'], targets)).toMatchObject([
      { figure: 'fairness', old: '0.5', new: '0.4', goal: '>= 0.7' },
    ]);
  });
});

describe('A trace of system calls', () => {
  it('is counted between marks, on threads of the process, except for Node’s own calls', () => {
    const text = [
      '10 openat(AT_FDCWD, "/before", O_RDONLY) = 3',
      '10 clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 11',
      '10 clone(flags=CLONE_VFORK|SIGCHLD) = 20',
      '10 write(1000000, "begin admit", 11) = -1 EBADF (Bad file descriptor)',
      '10 read(3, "x", 1) = 1',
      '11 fstat(3,  <unfinished ...>',
      '20 unlink("/of a child") = 0',
      '10 futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 1',
      '11 <... fstat resumed>{st_mode=S_IFREG}) = 0',
      '10 read(3, "", 1) = 0',
      '10 write(1000000, "end", 3) = -1 EBADF (Bad file descriptor)',
      '10 close(3) = 0',
      '10 write(1000000, "begin admit", 11) = -1 EBADF (Bad file descriptor)',
      '10 write(1000000, "end", 3) = -1 EBADF (Bad file descriptor)',
    ].join('\n');
    const counts = callsOf(text) as Map<string, Map<string, number>[]>;
    expect([...counts].map(([name, all]) => [name, all.map((calls) => Object.fromEntries(calls))])).toEqual([
      ['admit', [{ read: 2, fstat: 1 }, {}]],
    ]);
  });

  it('has the calls of all processes before and after the end of the first', () => {
    const text = [
      '10 execve("/bin/sh", ["sh"], 0x7 /* 3 vars */) = 0',
      '10 vfork( <unfinished ...>',
      '11 read(3,  <unfinished ...>',
      '10 <... vfork resumed>) = 11',
      '12 +++ exited with 0 +++',
      '10 exit_group(0) = ?',
      '10 +++ exited with 0 +++',
      '11 <... read resumed>"", 1) = 0',
      '11 close(3) = 0',
      '11 +++ exited with 0 +++',
    ].join('\n');
    expect(callsUntilEnd(text)).toEqual({ calls: 4, leftCalls: 1 });
  });
});

describe('Statistics', () => {
  it('are of the samples, not between them', () => {
    const samples = Array.from({ length: 1000 }, (_, i) => 1000 - i);
    expect(medianOf(samples)).toBe(500);
    expect(quantile(samples, 0.99)).toBe(990);
    expect(spread(samples)).toEqual({ samples: 1000, medianNs: 500, p99Ns: 990, p999Ns: 999, maxNs: 1000 });
    expect(spread([7])).toEqual({ samples: 1, medianNs: 7, p99Ns: 7, p999Ns: 7, maxNs: 7 });
  });

  it('of no samples are none', () => {
    expect(spread([])).toEqual({ samples: 0 });
  });
});

const ROW = {
  scenario: 's',
  name: 'a < b',
  medianNs: 1500,
  p99Ns: 2e6,
  yardstick: 'E',
  yardstickNs: 10,
  ratio: 150,
};

describe('Locality', () => {
  it('looks at one pair of CPUs of each relation there is', async () => {
    const { locations } = await discover({ synthetic: 'package:2 numa:2 l3:2 core:2 pu:2' });
    expect(pairsOf(locations)).toEqual([
      { relation: 'same core', pair: [0, 1] },
      { relation: 'same L3', pair: [0, 2] },
      { relation: 'same NUMA node', pair: [0, 4] },
      { relation: 'same package', pair: [0, 8] },
      { relation: 'other package', pair: [0, 16] },
    ]);
  });

  it('looks at one memory at each distance', async () => {
    const distances = [
      [10, 12, 20, 20],
      [12, 10, 20, 20],
      [20, 20, 10, 12],
      [20, 20, 12, 10],
    ];
    const machine = await discover({
      json: {
        columns: ['cpu', 'core', 'socket', 'numa'],
        cpus: [0, 1, 2, 3].map((id) => [id, id, id >> 1, id]),
        nodes: distances.map((row, id) => ({ id, memory: 2 ** 30, distances: row })),
      },
    });
    const ofCpus = (...cpus: number[]) => machine.locations.filter(({ cpu }) => cpus.includes(cpu));
    const home = (found: ReturnType<typeof memoriesOf>) => [found.home.id, found.memories];
    expect(home(memoriesOf(machine, ofCpus(0, 1, 2, 3)))).toEqual([
      0,
      [
        [10, 0],
        [12, 1],
        [20, 2],
      ],
    ]);
    expect(home(memoriesOf(machine, ofCpus(2)))).toEqual([
      2,
      [
        [10, 2],
        [12, 3],
        [20, 0],
      ],
    ]);
  });
});

describe('Tables', () => {
  it('leave out empty columns, and separate times from the rest', () => {
    const tables = tablesOf([
      { ...ROW, target: 200, met: true },
      { name: 'c', level: 'x|y' },
    ]);
    expect(tables.map(inMarkdown)).toEqual([
      [
        '| name | median | p99 | yardstick | ratio | target | met |',
        '| --- | --- | --- | --- | --- | --- | --- |',
        '| a < b | 1.5 µs | 2 ms | E 10 ns | 150 | <= 200 | yes |',
      ].join('\n'),
      ['| name | level |', '| --- | --- |', '| c | x\\|y |'].join('\n'),
    ]);
  });

  it('show estimates with their intervals, and the least of a target', () => {
    const row = {
      name: 'a',
      gainShare: { mean: 0.12345, plusMinus: 0.01234 },
      moves: { mean: 2, plusMinus: 0 },
      targets: { gainShare: { least: 0.03 }, moves: 1 },
    };
    expect(tablesOf([row]).map(inMarkdown)).toEqual([
      [
        '| name | gain | moves | target |',
        '| --- | --- | --- | --- |',
        '| a | 12.3 % ± 1.2 % | 2 | gain >= 3 %; moves <= 1 |',
      ].join('\n'),
    ]);
  });

  it('show times in units', () => {
    expect([0, 0.5, 999, 1000, 1234567, 6.5e10].map(duration)).toEqual([
      ...['0 ns', '0.5 ns', '999 ns', '1 µs'],
      ...['1.23 ms', '65 s'],
    ]);
  });
});

describe('A picture of percentiles', () => {
  const ways = [
    { name: 'a & b', times: Array.from({ length: 1000 }, (_, i) => (i + 1) * 1e3) },
    { name: '<c>', times: [2e6] },
  ];

  it('has a line for each way, which never falls as the percentile rises', () => {
    const picture: string = percentilePicture(ways);
    const lines = [...picture.matchAll(/<path d="M([^"]*)" stroke="hsl[^"]*"\/>/g)].map(([, path]) =>
      path!.split(' L').map((point) => Number(point.split(',')[1])),
    );
    expect(lines).toHaveLength(ways.length);
    for (const heights of lines) expect(heights).toEqual([...heights].sort((a, b) => b - a));
  });

  it('has each way and its p99 in its title, as text', () => {
    const picture: string = percentilePicture(ways);
    expect(picture).toContain('a &amp; b 990 µs at p99; &lt;c> 2 ms at p99');
  });
});
