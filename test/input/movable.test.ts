// needs: nothing
import { describe, expect, it } from 'vitest';
import { CpuSet, NodeSet } from '../../lib/index.js';
import { parseConfig } from '../../lib/input/config.js';
import { parseMovable } from '../../lib/input/requests/movable.js';
import { parseAdmit } from '../../lib/input/requests/request.js';
import { thrownBy } from '../support/error-of.js';

const USUAL = { maxPerHour: null, noticeMs: 5_000, exclude: NodeSet.EMPTY };

describe('the option movable', () => {
  it.each([
    ['nothing', undefined, undefined],
    ['false', false, undefined],
    ['true', true, USUAL],
    ['no terms', {}, USUAL],
    ['a number of moves', { maxPerHour: 3 }, { ...USUAL, maxPerHour: 3 }],
    ['a notice in milliseconds', { notice: 20 }, { ...USUAL, noticeMs: 20 }],
    ['a notice in words', { notice: '1m30s' }, { ...USUAL, noticeMs: 90_000 }],
    ['nodes as a list', { exclude: '0-1' }, { ...USUAL, exclude: NodeSet.of(0, 1) }],
    ['nodes as numbers', { exclude: [1] }, { ...USUAL, exclude: NodeSet.of(1) }],
    [
      'nodes from an iterator',
      { exclude: new Set([0, 3]).values() },
      { ...USUAL, exclude: NodeSet.of(0, 3) },
    ],
    ['nodes as a set', { exclude: NodeSet.of(2) }, { ...USUAL, exclude: NodeSet.of(2) }],
  ])('takes %s', (_, value, consent) => {
    expect(parseMovable(value)).toEqual(consent);
  });

  it.each([
    ['a text', 'yes', 'movable'],
    ['null', null, 'movable'],
    ['no move at all', { maxPerHour: 0 }, 'movable.maxPerHour'],
    ['part of a move', { maxPerHour: 1.5 }, 'movable.maxPerHour'],
    ['a notice that is none', { notice: 'soon' }, 'movable.notice'],
    ['a negative notice', { notice: -1 }, 'movable.notice'],
    ['nodes that are none', { exclude: 'all' }, 'movable.exclude'],
    ['a number for nodes', { exclude: 1 }, 'movable.exclude'],
    ['CPUs for nodes', { exclude: CpuSet.of(1) }, 'movable.exclude'],
  ])('refuses %s', (_, value, option) => {
    expect(thrownBy(() => parseMovable(value))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { option },
    });
  });

  it('refuses terms that it does not know', () => {
    expect(thrownBy(() => parseMovable({ max: 1 }))).toMatchObject({ code: 'ERR_INVALID_OPTION' });
  });
});

describe('the annotation numalign.io/movable', () => {
  const { placement } = parseConfig({});
  const podWith = (annotations: unknown) => ({
    ...{ kind: 'Pod', metadata: { name: 'a', annotations } },
    spec: { containers: [{ name: 'main' }] },
  });
  const movableOf = (annotations: unknown, options = {}) =>
    parseAdmit(podWith(annotations), options, placement).movable;

  it.each([
    ['left out', {}, undefined],
    ['"true"', { 'numalign.io/movable': 'true' }, USUAL],
    ['"false"', { 'numalign.io/movable': 'false' }, undefined],
  ])('holds without an option: %s', (_, annotations, consent) => {
    expect(movableOf(annotations)).toEqual(consent);
  });

  it('gives way to the option', () => {
    const annotations = { 'numalign.io/movable': 'true' };
    expect(movableOf(annotations, { movable: false })).toBeUndefined();
    expect(movableOf(annotations, { movable: { maxPerHour: 1 } })).toMatchObject({ maxPerHour: 1 });
  });

  it('is refused if it contradicts the option', () => {
    const error = thrownBy(() => movableOf({ 'numalign.io/movable': 'maybe' }));
    expect(error).toMatchObject({
      code: 'ERR_INVALID_POD',
      details: { field: 'metadata.annotations.numalign.io/movable', value: 'maybe' },
    });
  });
});
