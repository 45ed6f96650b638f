// Log: what the node's operator reads.

/** One line each; `facts` are for machines. */
export type Log = (
  level: 'info' | 'warn' | 'error',
  message: string,
  facts?: Record<string, unknown>,
) => void;
