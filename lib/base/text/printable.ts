// Text from outside, such as names and paths, made safe to print in a line.

// Most texts are: the classes below take V8 a millisecond to look up.
const PLAIN = /^[ -~]*$/;

/** The text without characters that could steer a terminal or forge a line. */
export function printable(text: string): string {
  return PLAIN.test(text) ? text : text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}
