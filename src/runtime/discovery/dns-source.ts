import { isIPv6 } from "node:net";
import { type DiscoverySource, type EndpointConfig, formatProblem, readEndpoint } from "../../config/index.ts";
import { createPollLoop, type PollLoop } from "../../signals/index.ts";
import type { EndpointSource, SourceSurroundings } from "./endpoint-source.ts";

type DnsName = Extract<DiscoverySource, { readonly kind: "dns" }>;

/** Keeps balancers that started together from asking together. */
const JITTER = 0.1;

/** Every address that a name stands for is an endpoint, called by address and port. */
export class DnsSource implements EndpointSource {
  readonly #name: DnsName;
  readonly #surroundings: SourceSurroundings;
  readonly #found: (endpoints: readonly EndpointConfig[]) => void;
  readonly #loop: PollLoop;
  #isFailing = false;
  #isStopped = false;

  constructor(name: DnsName, surroundings: SourceSurroundings, found: (endpoints: readonly EndpointConfig[]) => void) {
    const { clock } = surroundings;
    this.#name = name;
    this.#surroundings = surroundings;
    this.#found = found;
    this.#loop = createPollLoop({ task: () => this.#look(), minGapMs: 0, nowMs: () => clock.nowMs() });
  }

  start(): void {
    this.#loop.runSoon();
  }

  /** A look-up that is under way is not waited for: nothing can end it, and its answer is dropped. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    void this.#loop.stop();
  }

  async #look(): Promise<number> {
    const { resolver, random } = this.#surroundings;
    const { host, intervalMs } = this.#name;
    const found = await resolver.resolve(host).catch(reasonOf);
    if (this.#isStopped) return 0;
    if (typeof found === "string" || found.length === 0) this.#keep(typeof found === "string" ? found : "no address");
    else this.#note(found);
    return intervalMs * (1 + JITTER * (2 * random.next() - 1));
  }

  #note(addresses: readonly string[]): void {
    this.#isFailing = false;
    this.#found([...addresses].sort().map((address) => endpointAt(address, this.#name)));
  }

  #keep(reason: string): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    const { log } = this.#surroundings;
    log.warn({ host: this.#name.host, reason }, "a name cannot be resolved; what was found last counts on");
  }
}

/** The name, not the address, is in the certificate of an https endpoint. */
function endpointAt(address: string, { scheme, host, port, basePath }: DnsName): EndpointConfig {
  const url = `${scheme}://${isIPv6(address) ? `[${address}]` : address}:${port}${basePath}`;
  const checked = readEndpoint(scheme === "https" ? { url, tls: { serverName: host } } : url);
  // The name was checked with the configuration, and a resolver gives addresses.
  if (!checked.ok) throw new Error(checked.problems.map(formatProblem).join("; "));
  return checked.value;
}

function reasonOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "error";
}
