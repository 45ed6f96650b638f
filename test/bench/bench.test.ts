// The benchmarks' program: what it is asked, what it answers, and that one damaged input is no harm
// to others. Not how fast anything is.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// They are JavaScript, without types.
const support = (name: string): Promise<any> => import(`${ROOT}bench/support/${name}.mjs`);
const { medianOf, quantile, spread } = await support('measure');
const { inMarkdown, tablesOf } = await support('tables');
const { duration } = await support('units');
const { memoriesOf, pairsOf } = await import(`${ROOT}bench/locality.mjs`);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function bench(...args: string[]) {
  return spawnSync(process.execPath, ['--expose-gc', 'bench/run.mjs', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
  });
}

/** One of bench/inputs by its name. */
function ownInput(name: string): unknown {
  const text = gunzipSync(readFileSync(`${ROOT}bench/inputs/inputs.jsonl.gz`)).toString();
  const lines = text.trim().split('\n');
  return lines.map((line) => JSON.parse(line)).find((line) => line.name === name).input;
}

describe('A folder of inputs', () => {
  it('is measured by name, and one that is damaged is told with a code', () => {
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
    expect(row).toMatchObject({ scenario: 'inputs', yardstick: 'E', kubeletNs: 360_000 });
    for (const member of ['medianNs', 'p99Ns', 'samples', 'yardstickNs', 'ratio', 'bytes'])
      expect(row[member]).toBeGreaterThan(0);
  });

  it('has to be there', () => {
    const { status, stderr } = bench('--inputs', join(folder, 'none'));
    expect(status).toBe(2);
    expect(stderr).toContain('there is no such folder');
  });
});

describe('A name', () => {
  it('that is no scenario and no input is refused with those there are', () => {
    const { status, stderr } = bench('tkae');
    expect(status).toBe(2);
    for (const valid of ['no scenario and no input tkae', 'isolation', 'merge', 'hint-merge-n8-r4-k4']) {
      expect(stderr).toContain(valid);
    }
  });
});

describe('An option', () => {
  it('that is unknown is refused', () => {
    const { status, stderr } = bench('--jsno', 'x');
    expect(status).toBe(2);
    expect(stderr).toContain('--jsno');
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
  it('leave out columns in which nothing is said, and tell times apart from the rest', () => {
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

  it('show times in units', () => {
    expect([0, 0.5, 999, 1000, 1234567, 6.5e10].map(duration)).toEqual([
      ...['0 ns', '0.5 ns', '999 ns', '1 µs'],
      ...['1.23 ms', '65 s'],
    ]);
  });
});
