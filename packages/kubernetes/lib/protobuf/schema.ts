// Schema: the messages of a protocol, as its text in proto/ says. The texts hold the fields that
// this package uses; a peer's other fields are skipped by the wire format's rules.
import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs';
import { SaturatingWriter } from './saturating-writer.js';

export type Message = Record<string, any>;

// Enums as numbers: a newer peer sends values that the text does not name.
const READABLE: protobuf.IConversionOptions = { longs: Number, defaults: true, arrays: true, objects: true };

/**
 * Encodes and decodes the messages of one `.proto` text. Numbers of 64 bits are JavaScript numbers:
 * exact up to 2^53, the nearest double beyond. What is beyond the field's range is encoded as its
 * end, so that an unlimited 2^63 - 1, read as 2^63, is unlimited again when it is sent back.
 */
export class Schema {
  readonly root: protobuf.Root;
  private readonly types = new Map<string, protobuf.Type>();

  /** `name`: of the file in proto/, without `.proto`. Reads it synchronously. */
  constructor(name: string) {
    const text = readFileSync(new URL(`../../proto/${name}.proto`, import.meta.url), 'utf8');
    this.root = protobuf.parse(text, { keepCase: true }).root;
    this.root.resolveAll();
  }

  /** @throws TypeError where a member has a wrong type */
  encode(type: string, value: Message): Uint8Array {
    const found = this.typeOf(type);
    const flaw = found.verify(value);
    if (flaw !== null) throw new TypeError(`${type}: ${flaw}`);
    return found.encode(value, new SaturatingWriter()).finish();
  }

  /**
   * Fields that the peer leaves out have proto3's defaults: 0, '', false, [], {}, and null for a
   * message.
   * @throws Error, RangeError where the bytes are no such message
   */
  decode(type: string, bytes: Uint8Array): Message {
    const found = this.typeOf(type);
    return found.toObject(found.decode(bytes), READABLE);
  }

  /** Compiles the code of all messages, which is else done at the first use of each. */
  prepare(): void {
    for (const type of typesOf(this.root)) type.setup();
  }

  // protobufjs walks the whole tree of names at each look-up.
  private typeOf(name: string): protobuf.Type {
    const known = this.types.get(name);
    if (known) return known;
    const type = this.root.lookupType(name);
    this.types.set(name, type);
    return type;
  }
}

function typesOf(space: protobuf.NamespaceBase): protobuf.Type[] {
  return space.nestedArray.flatMap((each) => {
    const within = each instanceof protobuf.Namespace ? typesOf(each) : [];
    return each instanceof protobuf.Type ? [each, ...within] : within;
  });
}
