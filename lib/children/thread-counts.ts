// threadCounts: how many threads a program should start for its computations.

// What runtimes and libraries read at their start, according to their documentation. Without these
// variables they count the CPUs of the machine, or those in their mask at that moment.
const COMPUTING = [
  'OMP_NUM_THREADS', // OpenMP
  'MKL_NUM_THREADS',
  'OPENBLAS_NUM_THREADS',
  'BLIS_NUM_THREADS',
  'NUMEXPR_NUM_THREADS',
  'TF_NUM_INTRAOP_THREADS', // TensorFlow
  'TF_NUM_INTEROP_THREADS',
  'RAYON_NUM_THREADS', // Rust
  'TOKIO_WORKER_THREADS',
  'POLARS_MAX_THREADS',
  'GOMAXPROCS', // Go
  'JULIA_NUM_THREADS',
  'VIPS_CONCURRENCY', // libvips, and sharp on top of it
] as const;

// libuv's default: its threads wait for files and names more than they compute.
const LEAST_OF_LIBUV = 4;

/**
 * Returns variables, such as OMP_NUM_THREADS, that make the libraries of a program start one thread
 * for each of `cpus`, without those that `environment` has. UV_THREADPOOL_SIZE is at least 4. See
 * docs/threads.md.
 */
export function threadCounts(
  cpus: number,
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const counts = [
    ...COMPUTING.map((name) => [name, cpus] as const),
    ['UV_THREADPOOL_SIZE', Math.max(LEAST_OF_LIBUV, cpus)] as const,
  ];
  const missing = counts.filter(([name]) => environment[name] === undefined);
  return Object.fromEntries(missing.map(([name, count]) => [name, String(count)]));
}
