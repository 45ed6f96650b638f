// What many measurements come to.

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];

/** One line: the median, and what one in a hundred exceeds. */
export function summary(name, values) {
  const sorted = [...values].sort((a, b) => a - b);
  const [p50, p99] = [0.5, 0.99].map((q) => quantile(sorted, q).toFixed(2).padStart(8));
  return `${name.padEnd(36)} p50 ${p50}   p99 ${p99}`;
}
