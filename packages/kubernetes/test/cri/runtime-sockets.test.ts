import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findRuntimeSocket } from '../../lib/cri/runtime-sockets.js';
import { FakeRuntime, temporaryFolder } from './fake-runtime.js';

describe('The socket of the runtime', () => {
  it('is the first that exists and is a socket', async () => {
    const folder = temporaryFolder(onTestFinished);
    const [absent, file, socket] = ['absent', 'file', 'socket'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(file, '');
    const runtime = new FakeRuntime({});
    onTestFinished(() => runtime.close());
    await runtime.listen(socket);
    expect(findRuntimeSocket({}, [absent, file, socket])).toBe(socket);
    expect(() => findRuntimeSocket({}, [absent, file])).toThrow(
      expect.objectContaining({ code: 'ERR_RUNTIME_UNREACHABLE', message: expect.stringContaining(absent) }),
    );
  });

  it('is the one of the environment', () => {
    expect(findRuntimeSocket({ CONTAINER_RUNTIME_ENDPOINT: 'unix:///x.sock' }, [])).toBe('unix:///x.sock');
  });
});
