import { join } from 'node:path';
import { Server, ServerCredentials, type ServerWritableStream } from '@grpc/grpc-js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StartWatch } from '../../lib/cri/start-watch.js';
import { serviceDefinition } from '../../lib/grpc/service.js';
import { type Message, Schema } from '../../lib/protobuf/schema.js';
import { FakeRuntime, temporaryFolder } from './fake-runtime.js';

const events = serviceDefinition(new Schema('containerd-events'), 'containerd.services.events.v1.Events');

type Stream = ServerWritableStream<Message, Message>;

/** A containerd whose events are sent by the streams that are open. */
async function listen(socketPath: string): Promise<{ streams: Stream[]; server: Server }> {
  const [server, streams] = [new Server(), [] as Stream[]];
  server.addService(events, { Subscribe: (stream: Stream) => streams.push(stream) });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${socketPath}`, ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    );
  });
  onTestFinished(() => server.forceShutdown());
  return { streams, server };
}

function watchAt(socketPath: string): { watch: StartWatch; counts: { starts: number } } {
  const counts = { starts: 0 };
  const watch = new StartWatch(socketPath, () => {
    counts.starts++;
  });
  onTestFinished(() => watch.close());
  return { watch, counts };
}

const socketIn = () => join(temporaryFolder(onTestFinished), 'runtime.sock');
const START = { namespace: 'k8s.io', topic: '/tasks/start' };

describe('That a container starts', () => {
  it('is reported by containerd, without any other request', async () => {
    const socket = socketIn();
    const { streams } = await listen(socket);
    const { watch, counts } = watchAt(socket);
    watch.open();
    watch.open();
    await expect.poll(() => streams.length).toBe(1);
    expect(streams[0]!.request.filters).toEqual(['topic=="/tasks/start"']);
    streams[0]!.write(START);
    streams[0]!.write(START);
    await expect.poll(() => counts.starts).toBe(2);
    watch.close();
    await expect.poll(() => streams[0]!.cancelled).toBe(true);
  });

  it('is reported again after the runtime was absent and is opened again', async () => {
    const socket = socketIn();
    const first = await listen(socket);
    const { watch, counts } = watchAt(socket);
    watch.open();
    await expect.poll(() => first.streams.length).toBe(1);
    first.server.forceShutdown();
    const { streams } = await listen(socket);
    await expect
      .poll(() => {
        watch.open();
        return streams.length;
      })
      .toBeGreaterThan(0);
    streams.at(-1)!.write(START);
    await expect.poll(() => counts.starts).toBe(1);
  });

  it('is reported neither by another runtime, nor without one', async () => {
    const socket = socketIn();
    const other = new FakeRuntime({});
    onTestFinished(() => other.close());
    await other.listen(socket);
    for (const path of [socket, `${socket}.none`]) {
      const { watch, counts } = watchAt(path);
      watch.open();
      await new Promise((resolve) => setTimeout(resolve, 100));
      watch.open();
      expect(counts.starts).toBe(0);
    }
  });
});
