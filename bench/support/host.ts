import { cpus, release, totalmem } from "node:os";

/** The machine a benchmark ran on. */
export interface Host {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly node: string;
}

export function host(): Host {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() ?? "unknown",
    cores: cores.length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
  };
}

/** The same in one line. */
export function hostText({ cpu, cores, memoryGb, kernel, node }: Host): string {
  return `${cores} x ${cpu}, ${memoryGb} GB, Linux ${kernel}, Node ${node}`;
}
