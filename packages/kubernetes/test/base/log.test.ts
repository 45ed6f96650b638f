import { describe, expect, it } from 'vitest';
import { type LogFields, type LogFormat, type LogLevel, logWriter } from '../../lib/base/log.js';

const NOON = new Date('2026-01-02T12:00:00.000Z');

function lineOf(format: LogFormat, message: string, fields?: LogFields): string {
  const lines: string[] = [];
  logWriter({ format, level: 'info', write: (line) => lines.push(line), now: () => NOON })(
    'info',
    message,
    fields,
  );
  expect(lines).toHaveLength(1);
  return lines[0]!;
}

const FIELDS = { pod: 'default/web', container: 'main', decision: 'admit', ms: 1.25 } as const;

describe('The log', () => {
  it('has lines of text with the time, the level and the fields', () => {
    expect(lineOf('text', 'a container is admitted', FIELDS)).toBe(
      '2026-01-02T12:00:00.000Z info  a container is admitted pod=default/web container=main decision=admit ms=1.25\n',
    );
  });

  it('has an object of JSON for each message', () => {
    expect(JSON.parse(lineOf('json', 'a container is admitted', FIELDS))).toEqual({
      ...{ time: '2026-01-02T12:00:00.000Z', level: 'info', message: 'a container is admitted' },
      ...FIELDS,
    });
  });

  it('keeps one line for what others have named', () => {
    expect(lineOf('text', 'no\nway\u001b[1m', { path: 'a b\n"c"' })).toBe(
      '2026-01-02T12:00:00.000Z info  no way\ufffd[1m path="a b\\n\\"c\\""\n',
    );
    expect(lineOf('json', 'no\nway').trimEnd()).not.toContain('\n');
  });

  it('lets no field replace the time, the level or the message', () => {
    const fields = { time: 'never', level: 'none', message: 'other' };
    expect(JSON.parse(lineOf('json', 'this', fields))).toMatchObject({ level: 'info', message: 'this' });
  });

  it('writes errors, big numbers and sets as text', () => {
    const fields = { error: new Error('gone'), bytes: 1n, none: undefined, code: '' };
    expect(lineOf('text', 'x', fields)).toMatch(/x error=gone bytes=1\n$/);
    expect(JSON.parse(lineOf('json', 'x', fields))).toMatchObject({ error: 'gone', bytes: '1' });
  });

  it.each<[LogLevel, number]>([
    ['debug', 4],
    ['info', 3],
    ['warn', 2],
    ['error', 1],
  ])('of level %s leaves out the levels below', (level, count) => {
    const lines: string[] = [];
    const log = logWriter({ format: 'text', level, write: (line) => lines.push(line) });
    for (const each of ['debug', 'info', 'warn', 'error'] as const) log(each, 'x');
    expect(lines).toHaveLength(count);
  });
});
