import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseSamples, type Sample, sumOf } from "../../support/metric-samples.ts";
import { Child, freePort } from "./child.ts";

const CLI = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));

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

  private constructor(child: Child, listen: number, admin: number) {
    this.#child = child;
    this.url = `http://127.0.0.1:${listen}`;
    this.admin = `http://127.0.0.1:${admin}`;
  }

  /**
   * Starts it in front of `endpoints` and waits until it knows the models of all of them.
   * @param flags Further ones, such as `--policy`; probes are frequent unless these say otherwise.
   */
  static async start(endpoints: readonly string[], flags: readonly string[] = []): Promise<Serve> {
    if (!existsSync(CLI)) throw new Error("dist/ is not built: run npm run build");
    const [listen, admin] = [await freePort(), await freePort()];
    const args = [
      ...["serve", "--listen", `127.0.0.1:${listen}`, "--admin", `127.0.0.1:${admin}`],
      ...endpoints.flatMap((url) => ["--endpoint", url]),
      ...["--health-interval", "300ms", "--health-timeout", "2s", "--health-unhealthy-after", "2"],
      ...["--log-format", "json", "--log-level", "debug"],
      ...flags,
    ];
    const serve = new Serve(new Child(process.execPath, [CLI, ...args]), listen, admin);
    await serve.#child.answersAt(`${serve.admin}/readyz`);
    while (
      !(await serve.endpoints()).every(({ availability, engine }) => availability === "ready" && engine !== "auto")
    ) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
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
