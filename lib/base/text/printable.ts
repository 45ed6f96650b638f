// Text from elsewhere, such as names and paths, as it may stand in a line for people.

/** The same less what could steer a terminal or forge a line. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}
