// needs: nothing
// The shapes of values in the state's files, and where errors say that one is wrong.
import { describe, expect, it } from 'vitest';
import { finish } from '../../lib/base/steps.js';
import {
  cpuSet,
  listOf,
  listSteps,
  nodeIds,
  record,
  recordOf,
  unknownOf,
  whole,
} from '../../lib/state/format/shapes.js';
import { thrownBy } from '../support/error-of.js';

const number = (value: unknown, where: string) => whole(value, where);
const message = (action: () => unknown) => thrownBy(action)?.message;

describe('a damaged value', () => {
  it.each([
    ['an item of a list', () => listOf([1, 'x'], 'ids', number), /ids\[1\]: it is not/],
    [
      'an item of a long list',
      () => finish(listSteps([...Array(70).keys(), 'x'], 'ids', number)),
      /ids\[70\]: it/,
    ],
    ['a value by name', () => record({ a: 1, b: 'x', c: 2 }, 'devices', number), /devices\.b: it is not/],
    [
      'a value that is kept as it is',
      () => recordOf({ a: 1, b: 'x' }, 'request', number),
      /request\.b: it is/,
    ],
    ['a list of CPUs', () => cpuSet('x', 'cpus'), /cpus is not a list of CPUs \(/],
    ['the id of a node', () => nodeIds([0, -1], 'nodes'), /nodes is not/],
  ])('is named with its place: %s', (_, decode, text) => {
    expect(thrownBy(decode)).toMatchObject({
      code: 'ERR_STATE_CORRUPT',
      message: expect.stringMatching(text),
    });
  });

  it('has the details of its own error', () => {
    expect(thrownBy(() => listOf([{ a: 'x' }], 'pods', (each) => record(each, 'it', number)))).toMatchObject({
      message: expect.stringMatching(/pods\[0\]: it\.a: it is not/),
      details: { value: 'x' },
    });
  });

  it('is no excuse for a bug', () => {
    const bug = new TypeError('bug');
    const shape = () => {
      throw bug;
    };
    expect(thrownBy(() => listOf([1], 'ids', shape))).toBe(bug);
    expect(thrownBy(() => record({ a: 1 }, 'ids', shape))).toBe(bug);
  });
});

describe('unknown members', () => {
  const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });

  it('are those without a known name', () => {
    expect(unknownOf({ uid: 'a', future: [1] }, ['uid'])).toEqual({ future: [1] });
    expect(unknownOf({ uid: 'a' }, ['uid'])).toEqual({});
  });

  it('are kept up to a depth that can be written again', () => {
    expect(message(() => unknownOf({ future: nested(100) }, []))).toBeUndefined();
    expect(message(() => unknownOf({ future: nested(101) }, []))).toMatch(
      /^.*future is nested deeper than 100/,
    );
  });
});
