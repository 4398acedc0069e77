import { evenkeelCommand } from "../../../bench/support/install.ts";
import { parseSamples, type Sample, sumOf } from "../../support/metric-samples.ts";
import { Child } from "./child.ts";

/** What `/admin/endpoints` says of an endpoint, as far as these tests read it. */
export interface EndpointReport {
  readonly url: string;
  readonly engine: string;
  readonly availability: string;
  readonly work: Readonly<Record<string, number>>;
  readonly kvCapacityTokens: number | null;
  readonly signals: Readonly<Record<string, number>> | null;
}

/** `evenkeel serve` as a user runs it: the built program in a process of its own. */
export class Serve {
  readonly url: string;
  readonly admin: string;
  readonly #child: Child;

  private constructor(child: Child, { listen, admin }: Addresses) {
    this.#child = child;
    this.url = listen;
    this.admin = admin;
  }

  /**
   * Starts it in front of `endpoints` and waits until it knows all of them.
   * @param flags Further ones, such as `--policy`; probes are frequent unless these say otherwise.
   */
  static async start(endpoints: readonly string[], flags: readonly string[] = []): Promise<Serve> {
    const { file, args } = evenkeelCommand(
      ...["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json"],
      ...endpoints.flatMap((url) => ["--endpoint", url]),
      ...["--health-interval", "300ms", "--health-timeout", "2s", "--health-unhealthy-after", "2"],
      ...flags,
    );
    const child = new Child(file, args);
    const serve = new Serve(child, await addressesOf(child));
    while (!(await serve.endpoints()).every(isKnown)) await new Promise((resolve) => setTimeout(resolve, 50));
    return serve;
  }

  /** Log lines so far, one JSON object each. */
  get log(): string {
    return this.#child.log;
  }

  async endpoints(): Promise<readonly EndpointReport[]> {
    const response = await fetch(`${this.admin}/admin/endpoints`);
    const { pools } = (await response.json()) as {
      readonly pools: readonly { readonly endpoints: readonly EndpointReport[] }[];
    };
    return pools.flatMap(({ endpoints }) => endpoints);
  }

  async endpoint(url: string): Promise<EndpointReport> {
    const found = (await this.endpoints()).find((endpoint) => endpoint.url === url);
    if (found === undefined) throw new Error(`no endpoint ${url}`);
    return found;
  }

  async availability(url: string): Promise<string> {
    return (await this.endpoint(url)).availability;
  }

  /** All that the ledger holds open, over all endpoints and kinds of work: 0 when nothing is in flight. */
  async openWork(): Promise<number> {
    const endpoints = await this.endpoints();
    return endpoints.flatMap(({ work }) => Object.values(work)).reduce((sum, value) => sum + value, 0);
  }

  async samples(): Promise<readonly Sample[]> {
    return parseSamples(await (await fetch(`${this.admin}/metrics`)).text());
  }

  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    return sumOf(await this.samples(), `evenkeel_${name}`, labels);
  }

  /** How many requests ended in this way. */
  outcomes(outcome: string): Promise<number> {
    return this.metric("requests_total", { outcome });
  }

  async stop(): Promise<void> {
    this.#child.signal("SIGTERM");
    await this.#child.exited();
  }
}

interface Addresses {
  readonly listen: string;
  readonly admin: string;
}

/** The ports it took, from the line that says so. */
async function addressesOf(child: Child): Promise<Addresses> {
  await child.says('"msg":"serving"}');
  const lines = child.log.split("\n").filter((line) => line.includes('"msg":"serving"}'));
  return JSON.parse(lines[0] ?? "") as Addresses;
}

function isKnown({ availability, engine }: EndpointReport): boolean {
  return availability === "ready" && engine !== "auto";
}
