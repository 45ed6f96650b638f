// Schema: the messages of a protocol, as its text in proto/ says. The texts hold the fields that
// this package uses; a peer's other fields are skipped by the wire format's rules.
import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs';

export type Message = Record<string, any>;

// Enums as numbers: a newer peer sends values that the text does not name. Amounts are below 2^53.
const READABLE: protobuf.IConversionOptions = { longs: Number, defaults: true, arrays: true, objects: true };

/** Encodes and decodes the messages of one `.proto` text. */
export class Schema {
  readonly root: protobuf.Root;

  /** `name`: of the file in proto/, without `.proto`. Reads it synchronously. */
  constructor(name: string) {
    const text = readFileSync(new URL(`../../proto/${name}.proto`, import.meta.url), 'utf8');
    this.root = protobuf.parse(text, { keepCase: true }).root;
    this.root.resolveAll();
  }

  /** @throws TypeError where a member has a wrong type */
  encode(type: string, value: Message): Uint8Array {
    const found = this.root.lookupType(type);
    const flaw = found.verify(value);
    if (flaw !== null) throw new TypeError(`${type}: ${flaw}`);
    return found.encode(value).finish();
  }

  /**
   * Fields that the peer leaves out have proto3's defaults: 0, '', false, [], {}, and null for a
   * message.
   * @throws Error, RangeError where the bytes are no such message
   */
  decode(type: string, bytes: Uint8Array): Message {
    const found = this.root.lookupType(type);
    return found.toObject(found.decode(bytes), READABLE);
  }
}
