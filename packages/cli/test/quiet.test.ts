// needs: nothing
import { InvalidArgumentError } from 'commander';
import { describe, expect, it } from 'vitest';
import { enforcementRequest, partNames, quietParts } from '../lib/arguments/enforcement.js';
import { quietLines, quietText } from '../lib/pages/quiet-text.js';
import { numalign } from './numalign.js';

const refusal = (parse: () => unknown): string => {
  try {
    return `accepted: ${JSON.stringify(parse())}`;
  } catch (error) {
    if (error instanceof InvalidArgumentError) return error.message;
    throw error;
  }
};

describe('--quiet', () => {
  it.each([
    ['interrupts', { interrupts: true }],
    ['interrupts,idle=20,cache=25%', { interrupts: true, idle: { maxLatency: 20 }, cache: { percent: 25 } }],
    ['cache=4', { cache: { ways: 4 } }],
    ['idle,packets', { idle: true, packets: true }],
    ['idle=0', { idle: { maxLatency: 0 } }],
    ['all', { interrupts: true, workqueues: true, packets: true, idle: true, frequency: true }],
    [
      'all,idle=5,cache=1',
      {
        ...{ interrupts: true, workqueues: true, packets: true, frequency: true },
        ...{ idle: { maxLatency: 5 }, cache: { ways: 1 } },
      },
    ],
  ])('%s requests these parts', (text, parts) => {
    expect(quietParts(text)).toEqual(parts);
  });

  it.each([
    '',
    'noise',
    'interrupts,',
    'cache',
    'cache=',
    'cache=4%%',
    'idle=20%',
    'packets=3',
    'all=3',
    'a b',
  ])('%j is refused, with the valid parts', (text) => {
    const message = refusal(() => quietParts(text));
    expect(message).toContain(`"${text.split(',').at(-1)}" is none of interrupts, `);
    expect(message).toContain('cache=WAYS, cache=PERCENT%, or all');
  });

  it.each([
    ['cache=100%', 'quiet.cache.percent must be a whole number from 1 to 99'],
    ['cache=0', 'quiet.cache.ways must be a whole number from 1 to 32, not 0'],
    ['idle=1000001', 'quiet.idle.maxLatency must be a whole number from 0 to 1000000, not 1000001'],
  ])('%s is refused with the error of the API', (text, message) => {
    expect(refusal(() => quietParts(text))).toContain(message);
  });

  it('without parts takes no word that begins with a dash, and a program only after it', async () => {
    const { code, stderr } = await numalign(['run', '--cpus', '1', '--quiet', 'sh', '-c', 'true']);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/"sh" is none of interrupts, .*`--` goes before a command/),
    ]);
  });

  it('goes into the request unchanged', () => {
    expect(enforcementRequest({ quiet: true })).toEqual({ quiet: true });
    expect(enforcementRequest({ quiet: { packets: true } })).toEqual({ quiet: { packets: true } });
  });
});

describe('--require-quiet', () => {
  it('is a list of parts, beside the level of --require', () => {
    const requireQuiet = partNames('interrupts,idle');
    expect(enforcementRequest({ quiet: true, requireQuiet })).toEqual({
      quiet: true,
      require: { quiet: ['interrupts', 'idle'] },
    });
    expect(enforcementRequest({ requireQuiet, require: 'cpuset' })).toEqual({
      require: { enforcement: 'cpuset', quiet: ['interrupts', 'idle'] },
    });
  });

  it('does not change the level of --require without parts', () => {
    expect(enforcementRequest({ require: 'members' })).toEqual({ require: 'members' });
  });

  it('refuses unknown parts, and names the valid ones', () => {
    expect(refusal(() => partNames('interrupts,idle=20'))).toBe(
      '"idle=20" is not a part of quiet: interrupts, workqueues, packets, idle, frequency, cache.',
    );
  });
});

describe('the output about quiet', () => {
  const yes = { reached: 'yes', reasons: [] } as const;

  it('is empty for a grant without quiet', () => {
    expect([quietText(null), quietLines(null)]).toEqual(['', []]);
  });

  it('lists the reached parts, and has a line with the reasons for each other part', () => {
    const parts = {
      interrupts: { reached: 'partly', reasons: ['IRQ 1 is still on CPUs 1', 'IRQ 2 is still on CPUs 1'] },
      workqueues: yes,
      idle: yes,
      cache: { reached: 'no', reasons: ['resctrl is not mounted'] },
    } as const;
    const outcome = { parts, unchanged: ['the tick: boot with `nohz_full=1`'] };
    expect(quietText(outcome)).toBe('quiet: workqueues, idle');
    expect(quietLines(outcome)).toEqual([
      'quiet interrupts: partly: IRQ 1 is still on CPUs 1; IRQ 2 is still on CPUs 1',
      'quiet cache: no: resctrl is not mounted',
    ]);
  });

  it('has at most four reasons, and the number of further ones', () => {
    const reasons = ['a', 'b', 'c', 'd', 'e', 'f'];
    const linesOf = (count: number) =>
      quietLines({
        parts: { interrupts: { reached: 'no', reasons: reasons.slice(0, count) } },
        unchanged: [],
      });
    expect(linesOf(4)).toEqual(['quiet interrupts: no: a; b; c; d']);
    expect(linesOf(6)).toEqual(['quiet interrupts: no: a; b; c; d; and 2 more']);
  });

  it('cannot steer a terminal through the names of devices', () => {
    const reasons = ['IRQ 7 (\u001b[2J) is still on CPUs 1'];
    const [line] = quietLines({ parts: { interrupts: { reached: 'no', reasons } }, unchanged: [] });
    expect(line).not.toContain('\u001b');
  });
});
