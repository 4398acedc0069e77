/** What goes over a channel between processes for the exchange, among other things that do not concern it. */
export type ProcessEnvelope =
  /** `bytes`: an encoded `ExchangeMessage`, which whoever passes it on need not read. */
  { readonly exchange: "message"; readonly bytes: Uint8Array } | { readonly exchange: "left"; readonly node: string };

export function isEnvelope(message: unknown): message is ProcessEnvelope {
  if (typeof message !== "object" || message === null || !("exchange" in message)) return false;
  if (message.exchange === "message") return "bytes" in message && message.bytes instanceof Uint8Array;
  return message.exchange === "left" && "node" in message && typeof message.node === "string";
}
