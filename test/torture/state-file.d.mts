/** Members of JSON. */
// biome-ignore lint/suspicious/noExplicitAny: what is in them the test says
type Members = any;

export function decodeMembers(bytes: Buffer): Members;
export function encodeMembers(members: Members): string;
export function decodeOwner(bytes: Buffer): Members;
