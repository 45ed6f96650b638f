// needs: nothing
import { InvalidArgumentError } from 'commander';
import { describe, expect, it } from 'vitest';
import { movableTerms } from '../lib/arguments/movable.js';
import { numalign } from './numalign.js';

describe('--movable', () => {
  it.each([
    ['maxPerHour=4', { maxPerHour: 4 }],
    ['notice=2s', { notice: '2s' }],
    ['notice=500,exclude=0,2-3', { notice: 500, exclude: '0,2-3' }],
    ['exclude=1,maxPerHour=1,notice=1m', { exclude: '1', maxPerHour: 1, notice: '1m' }],
  ])('%s consents on these terms', (text, terms) => {
    expect(movableTerms(text)).toEqual(terms);
  });

  it.each([
    '',
    'yes',
    'notice',
    'notice=',
    'notice=soon',
    'maxPerHour=0',
    'exclude=x',
    'maxPerHour=1,',
    'why=1',
  ])('refuses "%s", and says what would be valid', (text) => {
    expect(() => movableTerms(text)).toThrow(InvalidArgumentError);
  });

  it('is refused by numalign run if no process would stay to answer', async () => {
    const args = ['run', '--cpus', '1', '--movable', '--no-supervise', '--', 'true'];
    const { code, stderr } = await numalign(args);
    expect(code).toBe(2);
    expect(stderr).toContain("option '--movable [terms]' cannot be used with option '--no-supervise'");
  });
});
