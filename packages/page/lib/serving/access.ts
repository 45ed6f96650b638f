// Which requests the page answers.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';

export interface Refusal {
  readonly status: 401 | 403 | 421;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

type Request = Pick<IncomingMessage, 'headers'> & {
  readonly socket: { readonly localAddress?: string | undefined };
};

const LOOPBACK = 'This page has no token, so that it is only for this machine: ask for it at 127.0.0.1.\n';

/**
 * Without a token: connections over loopback to a name of loopback. The second is what a page of
 * another site lacks whose name resolves to 127.0.0.1 (DNS rebinding). With a token no name matters:
 * a browser sends what was typed for one name to no other.
 */
export function refusalOf({ headers, socket }: Request, token: string | undefined): Refusal | undefined {
  if (token !== undefined) {
    if (hasToken(headers.authorization, token)) return undefined;
    const headersOf401 = {
      'www-authenticate': 'Basic realm="numalign: the token as password", charset="UTF-8"',
    };
    return { status: 401, text: 'The token of this page is needed, as password.\n', headers: headersOf401 };
  }
  if (!isLoopbackAddress(socket.localAddress)) return { status: 403, text: LOOPBACK };
  return isLoopbackHost(headers.host) ? undefined : { status: 421, text: LOOPBACK };
}

/** True for a request that a page of another site makes, if its browser says so. */
export function isOfAnotherSite({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return /^(cross-site|same-site)$/.test(String(headers['sec-fetch-site']));
}

function isLoopbackAddress(address = ''): boolean {
  const plain = address.replace(/^::ffff:/, '');
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}

function isLoopbackHost(host = ''): boolean {
  const url = `http://${host}`;
  if (!/^(\[[\da-f:.]+\]|[\w.-]+)(:\d+)?$/i.test(host) || !URL.canParse(url)) return false;
  const name = new URL(url).hostname.replace(/^\[|\]$/g, '');
  return name === 'localhost' || isLoopbackAddress(name);
}

function hasToken(authorization = '', token: string): boolean {
  const [, scheme = '', credentials = ''] = /^(basic|bearer) +(\S+)$/i.exec(authorization) ?? [];
  const given =
    scheme.toLowerCase() === 'basic'
      ? Buffer.from(credentials, 'base64')
          .toString()
          .replace(/^[^:]*:/, '')
      : credentials;
  // Digests have one length, whatever is given.
  return timingSafeEqual(digest(given), digest(token));
}

const digest = (text: string) => createHash('sha256').update(text).digest();
