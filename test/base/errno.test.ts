// needs: machine
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { errnoName, errorName, errorText } from '../../lib/base/codes/errno.js';
import { kernelError, NumalignError } from '../../lib/base/errors.js';

/** An error as Node throws it for an errno that libuv does not know. */
function unknownError(errno: number): NodeJS.ErrnoException {
  const code = `Unknown system error -${errno}`;
  const message = `${code}: ${code}, open '/f'`;
  return Object.assign(new Error(message), { errno: -errno, code, syscall: 'open', path: '/f' });
}

describe('the name of an errno', () => {
  it('is known for every number that the kernel gives a program', () => {
    const unused = [41, 58]; // not in errno.h
    for (let errno = 1; errno <= 133; errno++) {
      if (!unused.includes(errno)) expect(errnoName(errno), String(errno)).toMatch(/^E[A-Z0-9]+$/);
    }
    expect(errnoName(116)).toBe('ESTALE');
    expect(errnoName(999)).toBe('Unknown system error -999');
  });

  it('is the one of Node’s constants, where libuv has none', () => {
    for (const [name, errno] of Object.entries(constants.errno)) {
      const aliases = ['EWOULDBLOCK', 'EOPNOTSUPP', 'ENOTSUP'];
      if (!aliases.includes(name)) expect(errnoName(errno)).toBe(name);
    }
  });

  it('replaces the number in errors of Node', () => {
    expect(errorName(unknownError(117))).toBe('EUCLEAN');
    expect(errorText(unknownError(117))).toBe("EUCLEAN, open '/f'");
    const [error] = [1].map(() => {
      try {
        return readFileSync('/nonexistent');
      } catch (each) {
        return each as NodeJS.ErrnoException;
      }
    }) as [NodeJS.ErrnoException];
    expect(errorName(error)).toBe('ENOENT');
    expect(errorText(error)).toBe(error.message);
  });
});

describe('an error of a system call', () => {
  it('becomes ERR_SYSCALL with its name, and stays the cause', () => {
    const cause = unknownError(116);
    expect(kernelError(cause)).toMatchObject({
      ...{ code: 'ERR_SYSCALL', errno: 116, errnoName: 'ESTALE', syscall: 'open', cause },
      message: "ESTALE, open '/f'",
    });
  });

  it('is no other error', () => {
    for (const error of [
      new TypeError('x'),
      new NumalignError('ERR_SYSCALL', 'x', { errno: 2, syscall: 'a' }),
    ]) {
      expect(kernelError(error)).toBe(error);
    }
  });
});
