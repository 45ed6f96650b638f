import { expect, it } from 'vitest';
import { healthOf, readinessOf } from '../../lib/cli/health.js';

const part = (name: string, isMet: boolean, isVital: boolean) => ({
  ...{ part: name, isMet, isVital },
  text: isMet ? 'it works' : 'no\nsocket',
});

it('is ready if all vital parts work, and names each part in a line', () => {
  expect(readinessOf({ conditions: [part('nri', true, true), part('events', false, false)] })).toMatchObject({
    status: 200,
    text: '[+] nri: it works\n[-] events (not needed): no socket\n',
  });
  expect(readinessOf({ conditions: [part('nri', false, true), part('events', true, false)] })).toMatchObject({
    status: 503,
    text: '[-] nri: no socket\n[+] events: it works\n',
  });
});

it('is healthy unless a restart helps', () => {
  expect(healthOf({ ailment: undefined })).toMatchObject({ status: 200, text: 'ok\n' });
  expect(healthOf({ ailment: 'createContainer hangs' })).toMatchObject({
    status: 503,
    text: 'createContainer hangs\n',
  });
});
