// needs: nothing
import { describe, expect, it } from 'vitest';
import { refusalOf } from '../lib/serving/access.js';
import { parseAddress } from '../lib/serving/listening.js';

const asked = (localAddress: string | undefined, headers = {}) => ({
  headers: { host: 'localhost', ...headers },
  socket: { localAddress },
});

describe('a connection', () => {
  it.each([
    ['127.0.0.1', undefined],
    ['127.5.6.7', undefined],
    ['::1', undefined],
    ['::ffff:127.0.0.1', undefined],
    ['10.0.0.1', 403],
    ['::ffff:10.0.0.1', 403],
    ['fe80::1', 403],
    ['127.0.0.1.example', 403],
    [undefined, 403],
  ])('to %s is refused with %s without a token, and never with it', (address, status) => {
    expect(refusalOf(asked(address), undefined)?.status).toBe(status);
    const token = 'correct-horse-battery';
    const headers = { authorization: `Bearer ${token}`, host: 'anything' };
    expect(refusalOf(asked(address, headers), token)).toBeUndefined();
  });
});

describe('an address', () => {
  it.each([
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['[::1]:65535', { host: '::1', port: 65_535 }],
    ['127.0.0.1:65536', undefined],
    ['[127.0.0.1]:80', undefined],
    ['::1:80', undefined],
    ['localhost:80', undefined],
    ['127.0.0.1', undefined],
    ['', undefined],
  ])('%j is read as %j', (text, address) => expect(parseAddress(text)).toEqual(address));
});
