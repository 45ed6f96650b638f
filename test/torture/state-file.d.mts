/** Members of JSON. */
type Members = any;

export function decodeMembers(bytes: Buffer): Members;
export function encodeMembers(members: Members): string;
export function decodeOwner(bytes: Buffer): Members;
export function readHighest(stateDir: string): number;
export function writeHighest(stateDir: string, generation?: number): void;
