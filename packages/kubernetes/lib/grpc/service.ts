// Service: gRPC services for @grpc/grpc-js, from the texts in proto/.
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import type { Message, Schema } from '../protobuf/schema.js';

/**
 * The service with this full name, such as `v1.PodResourcesLister`, for `makeClientConstructor` and
 * `Server.addService`. Methods are named as in the text. `wireName`: its name on the wire, if another
 * version of the service has the same messages.
 */
export function serviceDefinition(schema: Schema, name: string, wireName = name): ServiceDefinition {
  const service = schema.root.lookupService(name);
  const methods = service.methodsArray.map((method): [string, MethodDefinition<Message, Message>] => {
    const { requestType, responseType, requestStream = false, responseStream = false } = method;
    const packageOf = (type: string) => service.lookupType(type).fullName.slice(1);
    const [request, response] = [packageOf(requestType), packageOf(responseType)];
    return [
      method.name,
      {
        path: `/${wireName}/${method.name}`,
        requestStream,
        responseStream,
        originalName: method.name,
        requestSerialize: (value) => Buffer.from(schema.encode(request, value)),
        requestDeserialize: (bytes) => schema.decode(request, bytes),
        responseSerialize: (value) => Buffer.from(schema.encode(response, value)),
        responseDeserialize: (bytes) => schema.decode(response, bytes),
      },
    ];
  });
  return Object.fromEntries(methods);
}
