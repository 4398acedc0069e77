import { askForUsage, replaceModel } from "./body-edit.ts";

/** A request body on its way to an endpoint: the client's bytes, but for what had to be changed. */
export class OutboundBody {
  readonly #sent: Buffer;
  readonly #decoded: Buffer;
  readonly #plain: Buffer;
  #asking: Buffer | undefined;

  /** @param model The name to put in place of the client's; undefined: it stays. */
  constructor(sent: Buffer, decoded: Buffer, model: string | undefined) {
    this.#sent = sent;
    this.#decoded = model === undefined ? decoded : replaceModel(decoded, model);
    // A compressed body goes out as it came unless something in it had to change.
    this.#plain = model === undefined ? sent : this.#decoded;
  }

  bytes(asksForUsage: boolean): Buffer {
    if (!asksForUsage) return this.#plain;
    this.#asking ??= askForUsage(this.#decoded);
    return this.#asking;
  }

  /** Whether the client's content-encoding still describes these bytes. */
  keepsContentEncoding(asksForUsage: boolean): boolean {
    return this.bytes(asksForUsage) === this.#sent;
  }
}
