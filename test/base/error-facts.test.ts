// needs: nothing
// The build for tests compares each error with the facts that its type promises.
import { expect, it } from 'vitest';
import { AdmissionError, NumalignError } from '../../lib/index.js';

const loose = NumalignError as unknown as new (code: string, message: string, details?: object) => unknown;

it.each([
  ['a code without a type', 'ERR_NONE', {}, 'the code ERR_NONE'],
  ['a fact that its type does not have', 'ERR_GRANT_BUSY', { value: 'uid', pid: 1 }, 'pid, which its type'],
  ['a fact of another type', 'ERR_GRANT_BUSY', { value: 1 }, 'value as number'],
  ['no fact where its type has one', 'ERR_OWNER_SHARED', { value: 'uid' }, 'have no valid'],
])('an error with %s is found', (_, code, details, flaw) => {
  expect(() => new loose(code, 'message', details)).toThrow(flaw);
});

it('facts that any error may have are none', () => {
  const { details } = new NumalignError('ERR_MANAGER_CLOSED', 'closed', { index: 1, value: 2 });
  expect(details).toEqual({ index: 1, value: 2 });
});

it('classes have the names that they are exported by', () => {
  const names = [NumalignError, AdmissionError].map((each) => (each as unknown as { name: string }).name);
  expect(names).toEqual(['NumalignError', 'AdmissionError']);
});

it('errors are known whichever copy of the package has made them', async () => {
  const path = '../../lib/base/errors.js?again';
  const again: { NumalignError: typeof NumalignError } = await import(path);
  expect(again.NumalignError).not.toBe(NumalignError);
  const error = new again.NumalignError('ERR_MANAGER_CLOSED', 'closed');
  expect(error).toBeInstanceOf(NumalignError);
  expect(new NumalignError('ERR_MANAGER_CLOSED', 'closed')).toBeInstanceOf(again.NumalignError);
  expect([error instanceof AdmissionError, new Error('other') instanceof NumalignError]).toEqual([
    false,
    false,
  ]);
});
