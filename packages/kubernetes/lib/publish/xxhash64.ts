// Xxhash64: the hash XXH64 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). Pure.

const PRIME_1 = 0x9e3779b185ebca87n;
const PRIME_2 = 0xc2b2ae3d27d4eb4fn;
const PRIME_3 = 0x165667b19e3779f9n;
const PRIME_4 = 0x85ebca77c2b2ae63n;
const PRIME_5 = 0x27d4eb2f165667c5n;

const STRIPE = 32;

const u64 = (value: bigint) => BigInt.asUintN(64, value);
const rotate = (value: bigint, bits: bigint) => u64(value << bits) | (value >> (64n - bits));
const round = (accumulator: bigint, lane: bigint) =>
  u64(rotate(u64(accumulator + lane * PRIME_2), 31n) * PRIME_1);
const fold = (hash: bigint, accumulator: bigint) => u64((hash ^ round(0n, accumulator)) * PRIME_1 + PRIME_4);

export function xxhash64(bytes: Buffer, seed = 0n): bigint {
  const stripes = bytes.length - (bytes.length % STRIPE);
  let hash = u64((stripes > 0 ? hashStripes(bytes, stripes, seed) : seed + PRIME_5) + BigInt(bytes.length));
  let at = stripes;
  for (; at + 8 <= bytes.length; at += 8)
    hash = u64(rotate(hash ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * PRIME_1 + PRIME_4);
  if (at + 4 <= bytes.length) {
    hash = u64(rotate(hash ^ u64(BigInt(bytes.readUInt32LE(at)) * PRIME_1), 23n) * PRIME_2 + PRIME_3);
    at += 4;
  }
  for (; at < bytes.length; at++) hash = u64(rotate(hash ^ u64(BigInt(bytes[at]!) * PRIME_5), 11n) * PRIME_1);
  return avalanche(hash);
}

// Four lanes of 8 bytes a stripe.
function hashStripes(bytes: Buffer, end: number, seed: bigint): bigint {
  const lanes = [seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1].map(u64);
  for (let at = 0; at < end; at += STRIPE)
    for (let lane = 0; lane < 4; lane++)
      lanes[lane] = round(lanes[lane]!, bytes.readBigUInt64LE(at + 8 * lane));
  const sum = lanes.reduce((sum, lane, i) => sum + rotate(lane, [1n, 7n, 12n, 18n][i]!), 0n);
  return lanes.reduce(fold, u64(sum));
}

function avalanche(hash: bigint): bigint {
  let mixed = u64((hash ^ (hash >> 33n)) * PRIME_2);
  mixed = u64((mixed ^ (mixed >> 29n)) * PRIME_3);
  return mixed ^ (mixed >> 32n);
}
