export const NEEDS: Readonly<
  Record<'nothing' | 'modules' | 'folders' | 'documents' | 'agents' | 'process' | 'machine', string>
>;
export function testsByNeed(
  root: string,
  folders: readonly string[],
  others?: readonly string[],
): Record<keyof typeof NEEDS, string[]>;
