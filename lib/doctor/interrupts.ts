// Interrupts: the text of /proc/interrupts. Pure.

export interface InterruptRow {
  readonly irq: number;
  readonly name: string;
  readonly counts: ReadonlyMap<number, number>;
}

/**
 * The rows of devices; undefined for a text of another form, such as the empty one that some
 * containers see.
 */
export function parseInterrupts(text: string): InterruptRow[] | undefined {
  const [head, ...lines] = text.split('\n');
  const cpus = head!.match(/\bCPU\d+\b/g)?.map((name) => Number(name.slice('CPU'.length)));
  if (!cpus) return undefined;
  return lines.flatMap((line) => {
    // Rows with a name instead of a number are the kernel's own.
    const [, irq, rest] = /^ *(\d+):(.*)$/.exec(line) ?? [];
    if (irq === undefined) return [];
    const words = rest!.trim().split(/ +/);
    const counts = new Map(
      cpus.map((cpu, i) => [cpu, Number(words[i])] as const).filter(([, count]) => count > 0),
    );
    return [{ irq: Number(irq), name: rest!.trim().split(/ {2,}/).at(-1)!, counts }];
  });
}
