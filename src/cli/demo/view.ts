import { styleText } from "node:util";
import type { AnswerTimes } from "./traffic.ts";

/** What one picture of the demo shows. */
export interface DemoPicture {
  readonly policy: string;
  /** What the policy compares. */
  readonly score: string;
  readonly elapsedSeconds: number;
  readonly answered: number;
  readonly failed: number;
  /** Means over the latest answers; undefined: none yet. */
  readonly times: AnswerTimes | undefined;
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
  /** What the policy compared, the chosen one first, then the lowest. */
  readonly scores: readonly { readonly endpoint: string; readonly score: number }[];
}

/** The picture as lines of text, no wider than 100 columns. */
export function renderDemo(picture: DemoPicture): string {
  const { policy, score, elapsedSeconds, answered, failed, times, endpoints, decisions, curl } = picture;
  const sent = endpoints.reduce((sum, endpoint) => sum + endpoint.sentRequests, 0);
  const counts = `${elapsedSeconds.toFixed(0)} s  ${answered} answered${failed > 0 ? `  ${failed} failed` : ""}`;
  return [
    `${bold("evenkeel demo")}  policy ${bold(policy)}  ${counts}${times === undefined ? "" : `  ${timesText(times)}`}`,
    "",
    dim("endpoint    speed  learned tok/s   waiting  running   prefill   to decode   share of requests"),
    ...endpoints.map((endpoint) => endpointLine(endpoint, sent)),
    "",
    dim(`latest decisions, by ${score}`),
    ...decisions.map(decisionLine),
    "",
    dim("send one yourself:"),
    ...curl,
    "",
    dim("Ctrl-C stops the demo."),
  ].join("\n");
}

function timesText({ firstTokenMs, wholeMs }: AnswerTimes): string {
  return `first token ${firstTokenMs.toFixed(0)} ms, whole answer ${(wholeMs / 1000).toFixed(1)} s`;
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
    `   ${"█".repeat(Math.round(share * 20)).padEnd(20)} ${(share * 100).toFixed(0)} %`,
  ].join("");
}

function decisionLine({ promptTokens, cachedTokens, endpoint, scores }: DemoDecision): string {
  const size = `${promptTokens} tok`.padStart(10);
  const cached = cachedTokens > 0 ? `(${cachedTokens} cached)`.padEnd(15) : " ".repeat(15);
  const compared = scores.map((one) => `${one.endpoint} ${shortNumber(one.score)}`).join("  ");
  return `${size} ${cached} ${bold(endpoint.padEnd(9))} ${dim(compared)}`;
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
