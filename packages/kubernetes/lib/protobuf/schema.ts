// Schema: the messages of a protocol, as its text in proto/ defines them. The texts have the fields
// that this package uses; the wire format allows to skip a peer's other fields.
import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs';
import { SaturatingWriter } from './saturating-writer.js';

export type Message = Record<string, any>;

// Enums are numbers: a newer peer may send values that the text does not name.
const READABLE: protobuf.IConversionOptions = { longs: Number, defaults: true, arrays: true, objects: true };

/**
 * Encodes and decodes the messages of one `.proto` text. 64-bit numbers are JavaScript numbers:
 * exact up to 2^53, the nearest double beyond. A number beyond the field's range is encoded as the
 * end of the range. So an unlimited 2^63 - 1, read as 2^63, is sent back as unlimited.
 */
export class Schema {
  readonly root: protobuf.Root;
  private readonly types = new Map<string, protobuf.Type>();

  /** `name`: the file in proto/, without `.proto`. Reads it synchronously. */
  constructor(name: string) {
    const text = readFileSync(new URL(`../../proto/${name}.proto`, import.meta.url), 'utf8');
    this.root = protobuf.parse(text, { keepCase: true }).root;
    this.root.resolveAll();
  }

  /** @throws TypeError if a member has a wrong type */
  encode(type: string, value: Message): Uint8Array {
    const found = this.typeOf(type);
    const flaw = found.verify(value);
    if (flaw !== null) throw new TypeError(`${type}: ${flaw}`);
    return found.encode(value, new SaturatingWriter()).finish();
  }

  /**
   * Decodes a message. Fields that the peer leaves out have proto3's defaults: 0, '', false, [],
   * {}, and null for a message.
   * @throws Error, RangeError if the bytes are not such a message
   */
  decode(type: string, bytes: Uint8Array): Message {
    const found = this.typeOf(type);
    return found.toObject(found.decode(bytes), READABLE);
  }

  /** Compiles the code of all messages, otherwise compiled at the first use of each. */
  prepare(): void {
    for (const type of typesOf(this.root)) type.setup();
  }

  // protobufjs walks the whole tree of names at each look-up.
  private typeOf(name: string): protobuf.Type {
    const hit = this.types.get(name);
    if (hit) return hit;
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
