import { askForUsage } from "./body-edit.ts";

/** A request body on its way to an endpoint: the client's bytes, but for what had to be changed. */
export class OutboundBody {
  readonly #sent: Buffer;
  readonly #readable: Buffer;
  readonly #plain: Buffer;
  #asking: Buffer | undefined;

  /**
   * @param decoded `sent` without its coding.
   * @param renamed `decoded` with another model's name; undefined: the name stays.
   */
  constructor(sent: Buffer, decoded: Buffer, renamed: Buffer | undefined) {
    this.#sent = sent;
    this.#readable = renamed ?? decoded;
    // A compressed body goes out as it came unless something in it had to change.
    this.#plain = renamed ?? sent;
  }

  /** What it takes in memory. */
  get keptBytes(): number {
    let bytes = 0;
    for (const buffer of new Set([this.#sent, this.#readable, this.#plain, this.#asking])) bytes += buffer?.length ?? 0;
    return bytes;
  }

  bytes(asksForUsage: boolean): Buffer {
    if (!asksForUsage) return this.#plain;
    this.#asking ??= askForUsage(this.#readable);
    return this.#asking;
  }

  /** Whether the client's content-encoding still describes these bytes. */
  keepsContentEncoding(asksForUsage: boolean): boolean {
    return this.bytes(asksForUsage) === this.#sent;
  }
}
