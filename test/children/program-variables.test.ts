// needs: nothing
import { afterEach, describe, expect, it } from 'vitest';
import { variable, withName } from '../../lib/children/program-variables.js';

const { env } = process;
afterEach(() => {
  process.env = env;
});
const environment = (variables: Record<string, string>) => {
  process.env = { ...env, ...variables };
};

describe('the variables of a program', () => {
  it('are those of its environment', () => {
    environment({ NUMALIGN_ACQUIRE: '{"cpu": 1}' });
    expect([variable('NUMALIGN_ACQUIRE'), variable('NUMALIGN_THREADS')]).toEqual(['{"cpu": 1}', undefined]);
  });

  it('are the app’s, not the daemon’s, if PM2 hands them over as JSON', () => {
    const pm2_env = JSON.stringify({ NUMALIGN_ACQUIRE: { cpu: 2 }, NODE_APP_INSTANCE: 3 });
    environment({ NUMALIGN_ACQUIRE: '{"cpu": 1}', NUMALIGN_THREADS: '{}', pm2_env });
    expect(['NUMALIGN_ACQUIRE', 'NUMALIGN_THREADS', 'NODE_APP_INSTANCE'].map(variable)).toEqual([
      '{"cpu":2}',
      '{}',
      '3',
    ]);
  });

  it.each(['not JSON', '1', 'null'])('are those of the environment if pm2_env is %s', (pm2_env) => {
    environment({ NUMALIGN_ACQUIRE: '{}', pm2_env });
    expect(variable('NUMALIGN_ACQUIRE')).toBe('{}');
  });
});

describe('the name of a request', () => {
  it('has the unchanged values of variables', () => {
    environment({ APP: '$' + '{INSTANCE}', INSTANCE: '3' });
    const request = { cpu: 1, name: '$' + '{APP}-$' + '{INSTANCE}-$INSTANCE' };
    expect(withName(request)).toEqual({ cpu: 1, name: '$' + '{INSTANCE}-3-$INSTANCE' });
  });

  it.each([{ cpu: 1 }, { cpu: 1, name: 'api' }, { cpu: 1, name: 5 }])('stays unchanged: %j', (request) => {
    expect(withName(request)).toEqual(request);
  });

  it('is refused if a variable is not set, and the error names it', () => {
    environment({});
    const name = 'api-$' + '{NO_SUCH_VARIABLE}';
    expect(() => withName({ name })).toThrow(
      expect.objectContaining({
        code: 'ERR_INVALID_ARGUMENT',
        message: expect.stringContaining(name),
        details: expect.objectContaining({ value: 'NO_SUCH_VARIABLE' }),
      }),
    );
  });
});
