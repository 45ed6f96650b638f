// needs: nothing
// A change as a line, and what the lines of a journal lead to.
import { describe, expect, it } from 'vitest';
import { type Assignments, emptyAssignments } from '../../lib/account/assignments.js';
import { finish } from '../../lib/base/steps.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { CpuSet } from '../../lib/index.js';
import type { Checkpoint } from '../../lib/state/format/checkpoint.js';
import { Replay } from '../../lib/state/format/replay.js';
import { changeText } from '../../lib/state/format/state-change.js';
import { thrownBy } from '../support/error-of.js';
import { kubeletRecord } from '../support/kubelet-records.js';
import { quiet } from '../support/quiet.js';
import { podOf } from '../support/quiet-world.js';

const NONE = emptyAssignments(DEFAULT_SETTINGS);
const V1_36 = { ...DEFAULT_SETTINGS, kubeletVersion: 'v1.36' as const };
const HEADER = { bootId: 'boot', writtenAt: '2026' };
const pod = (uid: string) => podOf(uid, 'ab', CpuSet.of(Number(uid)), quiet('0').request);
const [A, B] = ['a', 'b'].map((name) => ({ name, cpus: CpuSet.of(1) }));

const state = (generation: number, changes: Partial<Assignments> = {}): Checkpoint => ({
  ...{ ...HEADER, generation },
  assignments: { ...NONE, ...changes },
});
const change = (before: Partial<Assignments>, after: Partial<Assignments>, generation = 2) =>
  changeText(state(1, before), state(generation, { ...before, ...after }));
/** The members of a change beside its header. */
const members = (...args: Parameters<typeof change>) => {
  const { line, generation, bootId, writtenAt, ...others } = JSON.parse(change(...args)!);
  expect([line, generation, bootId, writtenAt]).toEqual(['change', 2, 'boot', '2026']);
  return others;
};

const kubelet = kubeletRecord('3');
const quietRecord = { settings: [], unknown: {} };

describe('a change', () => {
  it('has no member that stays', () => {
    expect(members({}, {})).toEqual({});
    expect(members({ kubelet, quiet: quietRecord, pods: [pod('1')], lastCpus: [A!] }, {})).toEqual({});
  });

  it.each<[string, Partial<Assignments>, Partial<Assignments>, object]>([
    ['CPUs', {}, { cpus: [[0, 0, 0, 0]] }, { cpus: [[0, 0, 0, 0]] }],
    [
      'settings',
      {},
      { settings: { ...DEFAULT_SETTINGS, simulated: true } },
      { settings: { simulated: true } },
    ],
    ['memory', {}, { memory: { 0: { memory: 1 } } }, { memory: { 0: { memory: 1 } } }],
    ['grants', { pods: [pod('1')] }, { pods: [pod('2')] }, { released: ['1'], pods: [{ uid: '2' }] }],
    ['the kubelet’s record', { kubelet }, { kubelet: kubeletRecord('2') }, { kubelet: { pods: [] } }],
    ['changed settings', { quiet: quietRecord }, { quiet: { ...quietRecord } }, { quiet: { settings: [] } }],
    ['new names', { lastCpus: [A!] }, { lastCpus: [A!, B!] }, { named: [{ name: 'b' }] }],
    ['fewer names', { lastCpus: [A!] }, { lastCpus: [] }, { lastCpus: [] }],
    [
      'names in another order',
      { lastCpus: [A!] },
      { lastCpus: [B!, A!] },
      { lastCpus: [{ name: 'b' }, { name: 'a' }] },
    ],
  ])('has new %s, and nothing else', (_, before, after, expected) => {
    const found = members(before, after);
    expect(Object.keys(found).sort()).toEqual(Object.keys(expected).sort());
    if (!('kubelet' in expected)) expect(found).toMatchObject(JSON.parse(JSON.stringify(expected)));
  });

  it.each<[string, Partial<Assignments>, Partial<Assignments>, number?]>([
    ['skips a generation', {}, {}, 3],
    ['changes members that this version does not know', {}, { unknown: { future: 1 } }],
    ['gives the file another version', { settings: V1_36 }, { kubelet }],
    ['follows a newer kubelet', { settings: V1_36 }, { settings: DEFAULT_SETTINGS }],
    ['removes the kubelet’s record', { kubelet, quiet: quietRecord }, { kubelet: null }],
    ['removes all changed settings', { kubelet, quiet: quietRecord }, { quiet: null }],
  ])('is no line if it %s', (_, before, after, generation) => {
    expect(change(before, after, generation)).toBeUndefined();
  });
});

describe('lines', () => {
  const podText = (uid: string) => JSON.parse(change({}, { pods: [pod(uid)] })!).pods[0];
  const settings = JSON.parse(change({}, { settings: { ...DEFAULT_SETTINGS } })!).settings;
  const whole = (generation: number, ...uids: string[]) => ({
    ...{ line: 'state', ...HEADER, generation, settings, cpus: [], memory: {}, lastCpus: [] },
    pods: uids.map(podText),
  });
  const step = (generation: number, more: object = {}) => ({
    line: 'change',
    ...HEADER,
    generation,
    ...more,
  });

  function replayed(lines: object[], isLenient = false, before?: Checkpoint) {
    const replay = new Replay({ isLenient, ...(before && { before }) });
    for (const line of lines) replay.take(line as never);
    return replay;
  }
  const result = (...args: Parameters<typeof replayed>) => {
    const { generation, assignments } = finish(replayed(...args).checkpoint());
    const names = assignments.lastCpus.map(({ name }) => name);
    return [generation, assignments.pods.map(({ uid }) => uid).join(), ...names];
  };
  const flaw = (...lines: object[]) => {
    const error = thrownBy(() => replayed(lines));
    expect(error).toMatchObject({ code: 'ERR_STATE_CORRUPT' });
    return error!.message;
  };

  it('begin with a whole state, and change it one after the other', () => {
    const lines = [
      ...[whole(1, '1'), step(2, { pods: [podText('2')] }), step(3, { released: ['2'] })],
      ...[step(4, { named: [{ name: 'a', cpus: '1' }] }), step(5, { named: [{ name: 'b', cpus: '2' }] })],
    ];
    expect(result(lines.slice(0, 2))).toEqual([2, '1,2']);
    expect(result(lines)).toEqual([5, '1', 'a', 'b']);
    const again = [...lines, step(6, { named: [{ name: 'a', cpus: '1' }] }), step(7)];
    expect(result(again)).toEqual([7, '1', 'b', 'a']);
    expect(result([...again, step(8, { lastCpus: [{ name: 'c', cpus: '1' }] })])).toEqual([8, '1', 'c']);
    expect(result([...again, whole(2, '3')])).toEqual([2, '3']);
  });

  it('follow a state that is known', () => {
    const before = state(4, { pods: [pod('1'), pod('2')], lastCpus: [A!] });
    expect(finish(replayed([], false, before).checkpoint())).toBe(before);
    expect(result([step(5, { released: ['1'] })], false, before)).toEqual([5, '2', 'a']);
    expect(result([step(5, { pods: [podText('1')] })], false, before)).toEqual([5, '1,2', 'a']);
    expect(result([step(5, { named: [{ name: 'b', cpus: '1' }] })], false, before)).toEqual([
      5,
      '1,2',
      'a',
      'b',
    ]);
  });

  it('are damaged if one is missing, twice there, of an unknown kind, or contradicts the others', () => {
    expect(flaw(step(2))).toMatch(/does not begin with a whole state/);
    expect(flaw(whole(1), step(3))).toMatch(/generation 3 follows 1/);
    expect(flaw(whole(1), step(2), step(2))).toMatch(/generation 2 follows 2/);
    expect(flaw(whole(1), { line: 'future' })).toMatch(/unknown kind/);
    expect(flaw(whole(1, '1', '1'))).toMatch(/a grant is in it twice/);
    expect(flaw(whole(1), step(2, { released: ['1'] }))).toMatch(/1 is released, and is not on record/);
    expect(flaw(whole(1), step(2, { released: 1 }))).toMatch(/released/);
    expect(flaw(whole(1), step(2, { named: 1 }))).toMatch(/named/);
    expect(flaw(whole(1), step(2, { named: [{ name: 1 }] }))).toMatch(/name/);
  });

  it('of two damaged files lead as far as they follow each other, with the latest settings', () => {
    expect(replayed([step(2)], true).isEmpty).toBe(true);
    const [one, two, four] = [whole(1, '1'), step(2, { pods: [podText('2')] }), step(4, { released: ['1'] })];
    expect(result([one, two, four], true)).toEqual([2, '1,2']);
    expect(result([one, one, two, two, step(3)], true)).toEqual([3, '1,2']);
    expect(result([one, two, four, step(3)], true)).toEqual([2, '1,2']);
    expect(result([one, two, whole(1, '3')], true)).toEqual([2, '1,2']);
    expect(result([one, four, whole(6, '3'), step(7)], true)).toEqual([7, '3']);
    const changed = step(4, { settings: { ...settings, simulated: true } });
    expect(finish(replayed([one, changed], true).checkpoint()).assignments.settings.simulated).toBe(true);
  });
});
