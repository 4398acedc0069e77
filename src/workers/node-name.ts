/** The name by which other workers know the one with this number. */
export function nodeName(number: number): string {
  return `worker-${number}`;
}
