// needs: agents
// An unfinished last line, and damaged lines.

import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { emptyAssignments } from '../../lib/account/assignments.js';
import { DEFAULT_GATES, DEFAULT_VERSION } from '../../lib/base/kubelet-features.js';
import { CpuSet } from '../../lib/index.js';
import { JournalFollower } from '../../lib/state/files/journal-follower.js';
import { judgeState } from '../../lib/state/files/state-files.js';
import { openFolder } from '../../lib/state/folder/folder.js';
import type { Checkpoint } from '../../lib/state/format/checkpoint.js';
import { encodeJournal, readJournal } from '../../lib/state/format/journal.js';
import { sealLine, sealText } from '../../lib/state/format/sealed-json.js';
import { changeText } from '../../lib/state/format/state-change.js';
import { thrownBy } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

const SETTINGS = {
  managedCPUs: null,
  reservedSystemCPUs: CpuSet.parse('0'),
  strictCPUReservation: false,
  isolatedCPUs: null,
  reservedMemory: {},
  cgroupRoot: null,
  kubeletVersion: DEFAULT_VERSION,
  featureGates: DEFAULT_GATES[DEFAULT_VERSION],
  simulated: true,
  unknown: {},
};

const header = (generation: number) => ({
  generation,
  bootId: 'boot',
  writtenAt: '2026-01-01T00:00:00.000Z',
});
const FIRST: Checkpoint = { ...header(1), assignments: emptyAssignments(SETTINGS) };
const second: Checkpoint = { ...header(2), assignments: { ...FIRST.assignments, cpus: [[0, 0, 0, 0]] } };
const third: Checkpoint = { ...header(3), assignments: { ...second.assignments, cpus: [[1, 1, 0, 0]] } };
const lineOf = (before: Checkpoint, next: Checkpoint) =>
  Buffer.from(sealText(changeText(before, next)!).line);

const BEGIN = encodeJournal(FIRST, null).bytes;
const LINES = [lineOf(FIRST, second), lineOf(second, third)] as const;
const codeOf = (...parts: readonly Buffer[]) => thrownBy(() => readJournal(Buffer.concat(parts)))?.code;

describe('a journal', () => {
  it('has the state of its last line', () => {
    const { checkpoint, place } = readJournal(Buffer.concat([BEGIN, ...LINES]));
    expect(checkpoint).toMatchObject({ generation: 3, assignments: { cpus: [[1, 1, 0, 0]] } });
    expect(place).toMatchObject({ snapshot: BEGIN.length, hasTail: false });
  });

  it('whose last line is partly on the disk, whichever part, has the state before that line', () => {
    const [line, last] = LINES;
    const before = Buffer.concat([BEGIN, line]);
    for (let at = 1; at < last.length; at++) {
      const parts = [
        last.subarray(0, at),
        Buffer.concat([last.subarray(0, at), Buffer.alloc(last.length - at)]),
        Buffer.concat([Buffer.alloc(at), last.subarray(at)]),
      ];
      for (const part of parts) {
        const { checkpoint, place } = readJournal(Buffer.concat([before, part]));
        expect(checkpoint.generation, `at ${at}`).toBe(2);
        expect(place, `at ${at}`).toMatchObject({ end: before.length, hasTail: true });
      }
    }
  });

  // Without its newline it merges with the next, and only the file `lock` reveals that.
  it('is damaged by any flipped bit in a line that others follow', () => {
    const [line, last] = LINES;
    for (let bit = 0; bit < 8 * (line.length - 1); bit++) {
      const damaged = Buffer.from(line);
      damaged[bit >> 3]! ^= 1 << (bit & 7);
      expect(codeOf(BEGIN, damaged, last), `bit ${bit}`).toBe('ERR_STATE_CORRUPT');
    }
  });

  it('is damaged if a line or the whole state is missing or doubled', () => {
    const [line, last] = LINES;
    const state = BEGIN.subarray(BEGIN.indexOf('\n') + 1);
    expect(codeOf(BEGIN, last)).toBe('ERR_STATE_CORRUPT');
    expect(codeOf(BEGIN, line, line, last)).toBe('ERR_STATE_CORRUPT');
    expect(codeOf(BEGIN, last, line)).toBe('ERR_STATE_CORRUPT');
    expect(codeOf(BEGIN, state, line)).toBe('ERR_STATE_CORRUPT');
    expect(codeOf(BEGIN, state)).toBe('ERR_STATE_CORRUPT');
  });
});

describe('a reader of a journal that ends with half a line', () => {
  function look(copy: readonly Buffer[]) {
    const path = makeStateDir();
    const { folder } = openFolder(path, 'private');
    const [line, last] = LINES;
    writeFileSync(join(path, 'state.json'), Buffer.concat([BEGIN, line, last.subarray(0, last.length >> 1)]));
    writeFileSync(join(path, 'state.copy.json'), Buffer.concat(copy));
    return new JournalFollower(folder).look();
  }

  it('takes it for an unfinished one if the copy has no more', () => {
    expect(look([BEGIN, LINES[0]])).toMatchObject({ kind: 'good', checkpoint: { generation: 2 } });
    expect(look([BEGIN])).toMatchObject({ kind: 'good', checkpoint: { generation: 2 } });
    expect(look([])).toMatchObject({ kind: 'good', checkpoint: { generation: 2 } });
  });

  it('takes it for damage if the copy has that line, though `lock` has no number', () => {
    expect(look([BEGIN, ...LINES])).toMatchObject({ kind: 'damaged', generation: 3 });
  });
});

describe('a follower of a journal', () => {
  const next = { line: 'change', ...header(4) };
  const lines: [string, object][] = [
    ['a whole state', { ...JSON.parse(`${BEGIN}`.split('\n')[1]!), ...header(4), checksum: undefined }],
    ['null for grants', { ...next, pods: null }],
    ['null for releases', { ...next, released: null }],
    ['a generation that is not the next', { ...next, ...header(5) }],
    ['members of a first line', { ...next, format: 'x', version: 9 }],
    ['members that are not known', { ...next, future: true }],
  ];

  it.each(lines)('finds the same as a reader of the whole file: a line with %s', (_name, members) => {
    const path = makeStateDir();
    const follower = new JournalFollower(openFolder(path, 'private').folder);
    const before = Buffer.concat([BEGIN, ...LINES]);
    const line = sealLine(JSON.stringify(members));
    writeFileSync(join(path, 'state.json'), before);
    expect(follower.look()).toMatchObject({ kind: 'good', checkpoint: { generation: 3 } });
    appendFileSync(join(path, 'state.json'), line);
    const whole = judgeState(Buffer.concat([before, Buffer.from(line)]), 0);
    expect(follower.look()).toEqual(whole);
  });
});
