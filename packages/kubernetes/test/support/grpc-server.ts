// A gRPC server for tests, on a Unix socket.
import { Server, ServerCredentials, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { serviceDefinition } from '../../lib/grpc/service.js';
import type { Schema } from '../../lib/protobuf/schema.js';

/** Serves one service; other methods are refused as UNIMPLEMENTED. */
export async function serve(
  path: string,
  schema: Schema,
  service: string,
  implementation: UntypedServiceImplementation,
): Promise<Server> {
  const server = new Server();
  server.addService(serviceDefinition(schema, service), implementation);
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix://${path}`, ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    ),
  );
  return server;
}
