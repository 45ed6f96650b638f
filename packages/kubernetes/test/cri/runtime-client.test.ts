import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { status } from '@grpc/grpc-js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RuntimeClient } from '../../lib/cri/runtime-client.js';
import { serviceDefinition } from '../../lib/grpc/service.js';
import { Schema } from '../../lib/protobuf/schema.js';
import { type Answers, FakeRuntime, temporaryFolder } from './fake-runtime.js';

const DIST = fileURLToPath(new URL('../../dist/cri/runtime-client.js', import.meta.url));
const VERSION = { runtime_name: 'fake', runtime_version: '1', runtime_api_version: 'v1' };
const never = () => new Promise<never>(() => {});

const socketIn = () => join(temporaryFolder(onTestFinished), 'runtime.sock');

function clientOf(socketPath: string, timeoutMs = 10_000): RuntimeClient {
  const client = new RuntimeClient({ socketPath, timeoutMs });
  onTestFinished(() => client.close());
  return client;
}

async function serve(answers: Answers, socketPath = socketIn(), definition?: never): Promise<string> {
  const runtime = new FakeRuntime(answers, definition);
  onTestFinished(() => runtime.close());
  await runtime.listen(socketPath);
  return socketPath;
}

/** A server that is no gRPC. */
async function serveBytes(onConnection: (socket: Socket) => void): Promise<string> {
  const socketPath = socketIn();
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    onConnection(socket);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return socketPath;
}

describe('A call to a runtime', () => {
  it('is answered', async () => {
    const client = clientOf(await serve({ Version: () => VERSION }));
    expect(await client.call('Version')).toMatchObject(VERSION);
  });

  it('accepts a socket with the prefix unix://', async () => {
    const socket = await serve({ Version: () => VERSION });
    for (const prefix of ['unix://', 'unix:'])
      expect(await clientOf(prefix + socket).call('Version')).toMatchObject(VERSION);
  });

  it.each(['', 'containerd.sock', 'tcp://127.0.0.1:1', undefined])(
    'is refused for a socket of %j',
    (socketPath) => {
      const make = () => new RuntimeClient({ socketPath: socketPath as string });
      expect(make).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }));
    },
  );

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('is refused with %d ms of time', (timeoutMs) => {
    const make = () => new RuntimeClient({ socketPath: '/x', timeoutMs });
    expect(make).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }));
  });

  it('says that there is no socket, or a file in its place', async () => {
    const socketPath = socketIn();
    await expect(clientOf(socketPath).call('Version')).rejects.toMatchObject({
      code: 'ERR_RUNTIME_UNREACHABLE',
      message: `there is no runtime at ${socketPath} (ENOENT)`,
    });
    writeFileSync(socketPath, '');
    await expect(clientOf(socketPath).call('Version')).rejects.toMatchObject({
      code: 'ERR_RUNTIME_UNREACHABLE',
      message: `${socketPath} is not a socket`,
    });
  });

  it('says that the socket of a killed runtime has no listener', async () => {
    const socketPath = socketIn();
    const program = `require('net').createServer().listen(${JSON.stringify(socketPath)}, () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', program]);
    await expect(clientOf(socketPath).call('Version')).rejects.toMatchObject({
      code: 'ERR_RUNTIME_UNREACHABLE',
    });
  });

  it.runIf(process.getuid?.() === 0)('says that this user may not connect', async () => {
    const socketPath = await serve({ Version: () => VERSION });
    chmodSync(socketPath, 0o600);
    chmodSync(join(socketPath, '..'), 0o755);
    const program = `
      const { RuntimeClient } = await import(${JSON.stringify(DIST)});
      process.setgroups([]);
      process.setgid(65534);
      process.setuid(65534);
      const client = new RuntimeClient({ socketPath: ${JSON.stringify(socketPath)} });
      const error = await client.call('Version').catch((error) => error);
      console.log(error.code);
      client.close();`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
    });
    expect(stdout).toBe('ERR_RUNTIME_PERMISSION\n');
  });

  it('ends after its time without an answer', async () => {
    const socket = await serve({ Version: never });
    const began = performance.now();
    await expect(clientOf(socket, 150).call('Version')).rejects.toMatchObject({
      code: 'ERR_RUNTIME_TIMEOUT',
    });
    expect(performance.now() - began).toBeGreaterThanOrEqual(140);
  });

  it('ends after its time if the listener says nothing', async () => {
    const socket = await serveBytes(() => {});
    await expect(clientOf(socket, 150).call('Version')).rejects.toMatchObject({
      code: 'ERR_RUNTIME_TIMEOUT',
    });
  });

  it.each<[string, (socket: Socket) => void]>([
    ['hangs up', (socket) => socket.destroy()],
    ['talks HTTP/1', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['talks nonsense', (socket) => socket.write(Buffer.alloc(1 << 16, 0xff))],
  ])('fails if the listener %s', async (_, onConnection) => {
    const socket = await serveBytes(onConnection);
    await expect(clientOf(socket, 3000).call('Version')).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_RUNTIME_(UNREACHABLE|TIMEOUT)$/),
    });
  });

  it('names the available version of the protocol', async () => {
    const v1 = serviceDefinition(new Schema('cri'), 'runtime.v1.RuntimeService');
    const former = Object.fromEntries(
      Object.entries(v1).map(([name, method]) => [
        name,
        { ...method, path: method.path.replace('.v1.', '.v1alpha2.') },
      ]),
    );
    const socket = await serve({ Version: () => VERSION }, socketIn(), former as never);
    await expect(clientOf(socket).call('Version')).rejects.toMatchObject({
      code: 'ERR_RUNTIME_UNSUPPORTED',
      message: expect.stringContaining('runtime.v1alpha2'),
      details: { value: 'v1alpha2' },
    });
  });

  it('says that the runtime has no such call', async () => {
    const socket = await serve({});
    await expect(clientOf(socket).call('Version')).rejects.toMatchObject({
      code: 'ERR_RUNTIME_UNSUPPORTED',
      details: { value: socket },
    });
  });

  it.each([
    [status.NOT_FOUND, 'ERR_RUNTIME_NOT_FOUND'],
    [status.INTERNAL, 'ERR_RUNTIME'],
    [status.UNKNOWN, 'ERR_RUNTIME'],
  ])("reports the runtime's refusal %d", async (code, expected) => {
    const socket = await serve({ ContainerStatus: () => Promise.reject({ code, details: 'cannot' }) });
    await expect(clientOf(socket).call('ContainerStatus', { container_id: 'x' })).rejects.toMatchObject({
      code: expected,
      message: 'ContainerStatus: cannot',
    });
  });

  it('fails if the answer is no message of the protocol', async () => {
    const v1 = serviceDefinition(new Schema('cri'), 'runtime.v1.RuntimeService');
    const broken = { ...v1.Version!, responseSerialize: () => Buffer.from([0x0a, 0xff, 0xff, 0xff, 0x0f]) };
    const socket = await serve({ Version: () => VERSION }, socketIn(), { ...v1, Version: broken } as never);
    await expect(clientOf(socket).call('Version')).rejects.toMatchObject({ code: 'ERR_RUNTIME' });
  });

  it('takes answers of 8 MiB', async () => {
    const runtime_name = 'x'.repeat(8 << 20);
    const socket = await serve({ Version: () => ({ ...VERSION, runtime_name }) });
    expect((await clientOf(socket).call('Version')).runtime_name).toHaveLength(8 << 20);
  });

  it('fails if the runtime ends meanwhile, and reaches its successor', async () => {
    const socketPath = socketIn();
    const first = new FakeRuntime({ Version: never });
    await first.listen(socketPath);
    const client = clientOf(socketPath);
    const call = client.call('Version');
    await expect.poll(() => first.requests.length).toBe(1);
    first.close();
    await expect(call).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_RUNTIME/) });
    await serve({ Version: () => VERSION }, socketPath);
    await expect.poll(() => client.call('Version').catch(() => undefined)).toMatchObject(VERSION);
  });
});
