import { expect, test } from 'vitest';
import { Schema } from '../../lib/protobuf/schema.js';

test('a schema that is prepared reads and writes the same', () => {
  const [prepared, plain] = [new Schema('nri'), new Schema('nri')];
  prepared.prepare();
  const message = {
    pod: { id: 'p', labels: { a: 'b' } },
    container: { linux: { resources: { cpu: { quota: { value: -1 } } } } },
  };
  const type = 'nri.pkg.api.v1alpha1.CreateContainerRequest';
  const bytes = plain.encode(type, message);
  expect(Buffer.from(prepared.encode(type, message))).toEqual(Buffer.from(bytes));
  expect(prepared.decode(type, bytes)).toEqual(plain.decode(type, bytes));
});

test('a member of a wrong type is refused by its name', () => {
  const schema = new Schema('nri');
  expect(() => schema.encode('nri.pkg.api.v1alpha1.Container', { id: 7 })).toThrow(/Container: id/);
});

test('a text that is not there is an error', () => {
  expect(() => new Schema('none')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
});
