export const TREE: string;
export class QuietTree {
  constructor(root: string, cpus: number);
  make(): void;
  valueOf(path: string): string;
  read(): Map<string, string>;
  set(path: string, value: string): void;
  addInterrupt(irq: number, cpus: string): void;
  removeInterrupt(irq: number): void;
  changed(): string[];
}
