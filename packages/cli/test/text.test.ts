// needs: nothing
import { idLength } from '@numalign/page/words';
import { CpuSet, NodeSet, NumalignError } from 'numalign';
import { describe, expect, it } from 'vitest';
import { findGrant } from '../lib/arguments/find-grant.js';
import { grantTable } from '../lib/pages/status/grant-table.js';
import { errorJson } from '../lib/terminal/report-error.js';
import { table } from '../lib/terminal/table.js';
import { pageWidth, wantsColors } from '../lib/terminal/terminal.js';
import { fillProse, fitPage, formatBytes, formatJson, labelRows } from '../lib/terminal/text.js';

describe('text on the command line', () => {
  it('writes bytes in binary units', () => {
    expect([0, 512, 2048, 2 ** 21, 67_430_000_000, 2 ** 40 * 1.5].map(formatBytes)).toEqual([
      '0 B',
      '512 B',
      '2 KiB',
      '2 MiB',
      '62.8 GiB',
      '1.5 TiB',
    ]);
  });

  it('keeps rows of numbers of JSON on one line and leaves strings alone', () => {
    const value = { rows: [[1, 2], [3]], text: '[\n  1,\n  2\n]', none: [] };
    expect(formatJson(value)).toContain('[1, 2]');
    expect(JSON.parse(formatJson(value))).toEqual(value);
  });

  it('prints an error as JSON whatever its details', () => {
    const value: { self?: unknown } = {};
    value.self = value;
    const json = JSON.parse(errorJson(new NumalignError('ERR_INVALID_TOPOLOGY', 'no pod', { value })));
    expect(json).toEqual({ error: { code: 'ERR_INVALID_TOPOLOGY', message: 'no pod', details: {} } });
  });

  it('fills long rows under their label', () => {
    expect(
      labelRows(
        [
          ['a:', 'one two three four five six'],
          ['long:', 'x'],
        ],
        27,
      ),
    ).toEqual(['a:     one two three four', '       five six', 'long:  x']);
  });

  it('shortens only the flexible column, and only if the table is too wide', () => {
    const columns = [{ title: 'ID' }, { title: 'OWNER', flexible: true }, { title: 'STATE' }];
    const rows = [['1', 'a command of some length', 'alive']];
    expect(table(columns, rows, { width: 100 })[1]).toBe('1   a command of some length  alive');
    expect(table(columns, rows, { width: 30 })[1]).toBe('1   a command of some…   alive');
    expect(table(columns, rows, { width: 5 })[1]).toBe('1   a command o…  alive');
  });

  it('has a block for each row if a page is too narrow for the table, without empty cells', () => {
    const columns = [{ title: 'ID' }, { title: 'OWNER', flexible: true }, { title: 'STATE' }];
    const rows = [
      ['1', 'a command of some length', 'alive, flagged and isolated'],
      ['', 'another', 'dead'],
    ];
    expect(table(columns, rows, { width: 50, isNarrow: true })[0]).toBe('ID  OWNER              STATE');
    expect(table(columns, rows, { width: 30, isNarrow: true })).toEqual([
      'ID     1',
      'OWNER  a command of some',
      '       length',
      'STATE  alive, flagged and',
      '       isolated',
      '',
      'OWNER  another',
      'STATE  dead',
    ]);
  });

  it('leaves lesser columns out before that, the last one first', () => {
    const columns = [
      { title: 'ID' },
      { title: 'THREADS', isLesser: true },
      { title: 'RUN' },
      { title: 'THROTTLED', isLesser: true },
    ];
    const rows = [['1', '2', '3%', '-']];
    const titles = (width: number, isNarrow = true) => table(columns, rows, { width, isNarrow })[0];
    expect(titles(20, false)).toBe('ID  THREADS  RUN  THROTTLED');
    expect([27, 26, 15].map((width) => titles(width))).toEqual([
      'ID  THREADS  RUN  THROTTLED',
      'ID  THREADS  RUN',
      'ID  RUN',
    ]);
  });

  it('has the width of the terminal before that of COLUMNS', () => {
    expect(pageWidth({ COLUMNS: '60' }, 80)).toBe(80);
    // Some terminals do not know their own width.
    expect(pageWidth({ COLUMNS: '60' }, 0)).toBe(60);
    expect(pageWidth({ COLUMNS: '60' }, undefined)).toBe(60);
    for (const COLUMNS of ['', '0', '-1', 'x', '6e1', undefined])
      expect(pageWidth({ COLUMNS }, undefined)).toBeUndefined();
  });

  it('refills paragraphs of a help text, and leaves indented lines', () => {
    const text = 'One two\nthree four.\n\nExamples:\n  $ a command that is longer\n';
    expect(fillProse(text, 13)).toBe('One two three\nfour.\n\nExamples:\n  $ a command that is longer\n');
    expect(fillProse(text, 80)).toBe('One two three four.\n\nExamples:\n  $ a command that is longer\n');
  });

  it('folds plain lines that are longer than a narrow page below their indent', () => {
    const text = 'rejected: one two three\n  held by "x": 0-3\n\n\u001b[1mcoloured and long\u001b[22m\n';
    expect(fitPage(text, { width: 14, isNarrow: true })).toBe(
      'rejected:\n  one two\n  three\n  held by\n    "x": 0-3\n\n\u001b[1mcoloured and long\u001b[22m\n',
    );
    expect(fitPage(text, { width: 14 })).toBe(text);
  });

  it('obeys NO_COLOR before FORCE_COLOR before the terminal', () => {
    expect(wantsColors({ NO_COLOR: '1', FORCE_COLOR: '1' }, true)).toBe(false);
    expect(wantsColors({ FORCE_COLOR: '1' }, false)).toBe(true);
    expect(wantsColors({ FORCE_COLOR: '0' }, true)).toBe(false);
    expect(wantsColors({ CI: '1' }, false)).toBe(false);
    expect(wantsColors({ TERM: 'dumb' }, true)).toBe(false);
    expect(wantsColors({ TERM: 'xterm' }, true)).toBe(true);
  });

  it('shows ids at a length at which they differ', () => {
    expect(idLength([])).toBe(8);
    expect(idLength(['12345678-aa', '12345678-ab'])).toBe(11);
    expect(idLength(['abcdefgh-1', 'bbcdefgh-1'])).toBe(8);
  });
});

describe('the table of grants', () => {
  it('has a row for a container that holds more than it runs on, without control characters', () => {
    const [cpus, held] = [CpuSet.parse('4-5'), CpuSet.parse('36-37')];
    const grant = {
      uid: 'abcdefgh-1',
      name: 'job',
      cpus: cpus.union(held),
      mixed: 0,
      elastic: null,
      numaNodes: NodeSet.of(0),
      memory: [],
      devices: {},
      isIsolated: false,
      enforcement: 'recorded' as const,
      cgroup: null,
      owner: { kind: 'persistent' as const, pid: null, command: null, cgroup: null },
      alive: true,
      booking: null,
      movable: null,
      upcoming: null,
      former: null,
      flags: [],
      admittedAt: '2026-01-02T03:04:05.678Z',
      survivors: [],
      cgroups: [],
      memoryEnforcement: [],
      quiet: null,
      containers: [
        {
          ...{ name: 'ma\u001bin', kind: 'app' as const, cpus, held, hint: { nodes: null, preferred: true } },
          isolation: 'container' as const,
          mixed: 0,
          ...{ memory: [], devices: {} },
        },
      ],
    };
    expect(grantTable([grant], { width: 120 }).slice(1)).toEqual([
      'abcdefgh  job       4-5,36-37        0     persistent  alive  recorded     2026-01-02 03:04:05Z',
      '          └─ ma?in  4-5, held 36-37',
    ]);
  });
});

describe('finding a grant', () => {
  const grants = [
    { uid: 'abcd1111-0', name: 'job' },
    { uid: 'abcd2222-0', name: 'other' },
    { uid: 'ffff3333-0', name: 'abcd1111' },
    { uid: 'eeee4444-0', name: 'twin' },
    { uid: 'eeee5555-0', name: 'twin' },
  ];
  const find = (text: string) => findGrant(grants, text, '/s').uid;

  it('takes an id, a beginning of at least 4 characters, or a name', () => {
    expect(find('abcd1111-0')).toBe('abcd1111-0');
    expect(find('ffff')).toBe('ffff3333-0');
    expect(find('job')).toBe('abcd1111-0');
  });

  it('refuses ambiguous text, even between a name and an id', () => {
    for (const text of ['abcd', 'twin', 'abcd1111']) expect(() => find(text)).toThrow(/may mean/);
  });

  it('refuses short or unknown text, and lists the grants', () => {
    for (const text of ['fff', 'nothing', '']) {
      expect(() => find(text)).toThrow(/there is abcd1111-0 \(job\), abcd2222-0 \(other\)/);
    }
    expect(() => findGrant([], 'job', '/s')).toThrow('there is no grant "job" in /s: nothing is granted');
  });
});
