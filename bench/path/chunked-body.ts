/** Decodes a chunked body (RFC 9112, 7.1) as it comes, wherever the pieces are cut. */
export class ChunkedBody {
  readonly #onData: (data: Buffer) => void;
  #state: "size" | "data" | "dataEnd" | "done" = "size";
  #sizeText = "";
  #left = 0;

  constructor(onData: (data: Buffer) => void) {
    this.#onData = onData;
  }

  /** Whether the last chunk has come. */
  get isComplete(): boolean {
    return this.#state === "done";
  }

  push(piece: Buffer): void {
    let at = 0;
    while (at < piece.length && this.#state !== "done") {
      if (this.#state === "data") at = this.#readData(piece, at);
      else at = this.#readLine(piece, at);
    }
  }

  #readData(piece: Buffer, at: number): number {
    const end = Math.min(piece.length, at + this.#left);
    this.#onData(piece.subarray(at, end));
    this.#left -= end - at;
    if (this.#left === 0) this.#state = "dataEnd";
    return end;
  }

  /** A size line, or the line end behind a chunk's data. */
  #readLine(piece: Buffer, at: number): number {
    const lineEnd = piece.indexOf("\n", at);
    if (lineEnd < 0) {
      this.#sizeText += piece.toString("latin1", at);
      return piece.length;
    }
    if (this.#state === "dataEnd") {
      this.#state = "size";
    } else {
      this.#left = Number.parseInt(this.#sizeText + piece.toString("latin1", at, lineEnd), 16);
      if (Number.isNaN(this.#left)) throw new Error("a chunk has no size");
      this.#state = this.#left === 0 ? "done" : "data";
    }
    this.#sizeText = "";
    return lineEnd + 1;
  }
}
