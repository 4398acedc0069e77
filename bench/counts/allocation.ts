/**
 * Bytes that a process of Node allocated on its heap, by what V8 wrote of its garbage collections (`--trace-gc-nvp`):
 * each line tells what was allocated since the collection before. @param log Whatever else it holds.
 */
export function allocatedBytes(log: string): number {
  const amounts = log.matchAll(/ gc=\S+ .*? allocated=(\d+) /g);
  return [...amounts].reduce((total, [, bytes = ""]) => total + signed(bytes), 0);
}

/** V8 writes a difference of two sizes as if it had no sign; what is freed late makes some of them negative. */
function signed(bytes: string): number {
  return Number(BigInt.asIntN(64, BigInt(bytes)));
}
