import { styleText } from "node:util";

/** What one picture of the demo shows. */
export interface DemoPicture {
  readonly policy: string;
  readonly elapsedSeconds: number;
  readonly answered: number;
  readonly failed: number;
  readonly endpoints: readonly DemoEndpoint[];
  /** Latest last. */
  readonly decisions: readonly DemoDecision[];
  readonly curl: readonly string[];
}

export interface DemoEndpoint {
  readonly id: string;
  /** What the engine was started with. */
  readonly speed: number;
  readonly sentRequests: number;
  readonly waitingRequests: number;
  readonly runningRequests: number;
  readonly prefillTokens: number;
  readonly outputTokens: number;
  /** What the balancer has learned. */
  readonly tokensPerSecond: number;
}

export interface DemoDecision {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly endpoint: string;
  readonly reason: string;
  /** Best first: endpoint and what the policy compared. */
  readonly scores: readonly { readonly endpoint: string; readonly score: number }[];
}

/** The picture as lines of text, no wider than 100 columns. */
export function renderDemo(picture: DemoPicture): string {
  const { policy, elapsedSeconds, answered, failed, endpoints, decisions, curl } = picture;
  const sent = endpoints.reduce((sum, endpoint) => sum + endpoint.sentRequests, 0);
  return [
    `${bold("evenkeel demo")}  policy ${bold(policy)}  ${elapsedSeconds.toFixed(0)} s  ${answered} answered${failed > 0 ? `  ${failed} failed` : ""}`,
    "",
    dim("endpoint    speed  learned tok/s   waiting  running   prefill   to decode   share of requests"),
    ...endpoints.map((endpoint) => endpointLine(endpoint, sent)),
    "",
    dim("latest decisions (prompt tokens, cached part, chosen, what was compared)"),
    ...decisions.map(decisionLine),
    "",
    dim("send one yourself:"),
    ...curl,
    "",
    dim("Ctrl-C stops the demo."),
  ].join("\n");
}

function endpointLine(endpoint: DemoEndpoint, sent: number): string {
  const share = sent === 0 ? 0 : endpoint.sentRequests / sent;
  return [
    endpoint.id.padEnd(10),
    `${endpoint.speed}x`.padStart(7),
    endpoint.tokensPerSecond.toFixed(0).padStart(15),
    String(endpoint.waitingRequests).padStart(10),
    String(endpoint.runningRequests).padStart(9),
    String(endpoint.prefillTokens).padStart(10),
    String(endpoint.outputTokens).padStart(12),
    `   ${"█".repeat(Math.round(share * 20)).padEnd(8)} ${(share * 100).toFixed(0)} %`,
  ].join("");
}

function decisionLine({ promptTokens, cachedTokens, endpoint, reason, scores }: DemoDecision): string {
  const size = `${promptTokens} tok`.padStart(10);
  const cached = cachedTokens > 0 ? `(${cachedTokens} cached)`.padEnd(15) : " ".repeat(15);
  const compared = scores.map((one) => `${one.endpoint} ${shortNumber(one.score)}`).join("  ");
  return `${size} ${cached} ${bold(endpoint.padEnd(9))} ${compared}  ${dim(reason)}`;
}

function shortNumber(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function bold(text: string): string {
  return styleText("bold", text);
}

function dim(text: string): string {
  return styleText("dim", text);
}
