// Codec: the messages within ttrpc's frames: see proto/ttrpc.proto.
import { Schema } from '../protobuf/schema.js';
import { MESSAGE_LIMIT } from './frame.js';
import { Status } from './status.js';

const schema = new Schema('ttrpc');

export interface Request {
  readonly service: string;
  readonly method: string;
  readonly payload: Uint8Array;
  /** 0 if there is none. */
  readonly timeout_nano: number;
}

export interface Response {
  readonly status: { readonly code: number; readonly message: string } | null;
  readonly payload: Uint8Array;
}

export const encodeRequest = (request: Request) => schema.encode('ttrpc.Request', request);
export const decodeRequest = (bytes: Uint8Array) => schema.decode('ttrpc.Request', bytes) as Request;
export const decodeResponse = (bytes: Uint8Array) => schema.decode('ttrpc.Response', bytes) as Response;

/** Encodes an answer. One that does not fit into a message becomes an error. */
export function encodeAnswer(payload: Uint8Array): Uint8Array {
  const bytes = schema.encode('ttrpc.Response', { payload });
  if (bytes.length <= MESSAGE_LIMIT) return bytes;
  const flaw = `the answer has ${bytes.length} bytes, a message at most ${MESSAGE_LIMIT}`;
  return encodeStatus(Status.RESOURCE_EXHAUSTED, flaw);
}

// What a log can hold, far less than what a message can.
const TEXT_LIMIT = 8192;

export function encodeStatus(code: number, message: string): Uint8Array {
  return schema.encode('ttrpc.Response', { status: { code, message: message.slice(0, TEXT_LIMIT) } });
}
