// Text from outside, such as names and paths, made safe to print in a line.

/** The text without characters that could steer a terminal or forge a line. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}
