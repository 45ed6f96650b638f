import type { Command } from 'commander';

/** The text of each page by its file's name. `date`: as YYYY-MM-DD. */
export function manPages(
  program: Command,
  facts: { version: string; date: string; stateDir: string },
): Readonly<Record<string, string>>;
