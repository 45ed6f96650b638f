// needs: nothing
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { errorOf, thrownBy } from '../../../test/support/error-of.js';
import { type DeviceFlags, deviceOptions, devicesOf } from '../lib/arguments/devices.js';
import { newFile } from './pods.js';

function flags(...args: string[]): DeviceFlags {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  for (const option of deviceOptions()) command.addOption(option);
  return command.parse(args, { from: 'user' }).opts();
}

const parsed = (...args: string[]) => devicesOf(flags(...args));
const refusal = (...args: string[]) => thrownBy(() => flags(...args))?.message;

describe('--device', () => {
  it('gives a resource the devices of a pattern, and may be repeated', async () => {
    expect(
      await parsed(
        ...['--device', 'example.com/nic=class:02*,vendor:8086+15b3,isVirtualFunction:true'],
        ...['--device', 'example.com/disk=id:0000:42:00.0,driver:nvme,name:nvme0n1'],
      ),
    ).toEqual({
      'example.com/nic': { class: '02*', vendor: ['8086', '15b3'], isVirtualFunction: true },
      'example.com/disk': { id: '0000:42:00.0', driver: 'nvme', name: 'nvme0n1' },
    });
    expect(await parsed()).toEqual({});
  });

  it.each([
    ['example.com/nic', 'such as example.com/nic=class:0200'],
    ['example.com/nic=', '"" is not a field and value such as class:0200; the fields are id, class'],
    ['example.com/nic=0200', '"0200" is not a field and value'],
    ['example.com/nic=class:', '"class:" is not a field and value'],
    ['example.com/nic=class:0200,', '"" is not a field and value'],
    ['example.com/nic=class:0200,class:0207', '"class" is given twice; alternatives are joined by +'],
    ['example.com/nic=clas:0200', 'did you mean "class"?'],
    ['example.com/nic=class:0200+', "not ''"],
    ['example.com/nic=vendor:0x8086', 'four hexadecimal digits'],
    ['example.com/nic=isVirtualFunction:yes', "true or false, not 'yes'"],
    ['example.com/nic=__proto__:x', 'has no option "__proto__"'],
    ['nic=class:0200', "named such as 'example.com/nic'"],
  ])('refuses %s', (text, message) => {
    expect(refusal('--device', text)).toContain(message);
  });

  it('refuses a resource that occurs twice', () => {
    const nic = 'example.com/nic=class:0200';
    expect(refusal('--device', nic, '--device', nic)).toContain(
      'The devices of example.com/nic are given twice.',
    );
  });
});

describe('--devices', () => {
  const FILE = `
example.com/nic: {class: '0200', vendor: ['8086', 15b3]}
example.com/gpu:
  - {id: gpu0, numaNodes: [0]}
  - {id: gpu1, numaNodes: [1], healthy: false}
`;

  it('reads patterns and lists of devices', async () => {
    expect(await parsed('--devices', newFile(FILE))).toEqual({
      'example.com/nic': { class: '0200', vendor: ['8086', '15b3'] },
      'example.com/gpu': [
        { id: 'gpu0', numaNodes: [0] },
        { id: 'gpu1', numaNodes: [1], healthy: false },
      ],
    });
    expect(await parsed('--devices', newFile('{"example.com/gpu": [{"id": "a"}]}', 'd.json'))).toEqual({
      'example.com/gpu': [{ id: 'a' }],
    });
  });

  it('gives way to --device, resource by resource', async () => {
    const { 'example.com/nic': nic, ...rest } = await parsed(
      ...['--devices', newFile(FILE), '--device', 'example.com/nic=driver:vfio-pci'],
    );
    expect(nic).toEqual({ driver: 'vfio-pci' });
    expect(Object.keys(rest)).toEqual(['example.com/gpu']);
  });

  it.each([
    ['a list', '- a', 'ERR_INVALID_ARGUMENT', 'one document of patterns or lists of devices by resource'],
    ['nothing', '', 'ERR_INVALID_ARGUMENT', 'one document'],
    ['two documents', `${FILE}---\n${FILE}`, 'ERR_INVALID_ARGUMENT', 'one document'],
    [
      'an unquoted number',
      'example.com/nic: {class: 0200}',
      'ERR_INVALID_OPTION',
      "a text of four hexadecimal digits such as '0200'",
    ],
    [
      'an unknown key',
      'example.com/gpu: [{id: a, node: 0}]',
      'ERR_INVALID_OPTION',
      '[0] has no option "node"',
    ],
    ['no selection', 'example.com/gpu: 8', 'ERR_INVALID_OPTION', "devices['example.com/gpu']"],
    ['a name without a domain', 'gpu: [{id: a}]', 'ERR_INVALID_OPTION', "named such as 'example.com/nic'"],
  ])('refuses %s, and says where', async (_, text, code, message) => {
    const file = newFile(text);
    const error = await errorOf(() => parsed('--devices', file));
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
    expect(error.message).toContain(file);
  });
});
