import type { Workload, WorkloadRequest } from "../../src/sim/index.ts";
import type { Answer, CompletionClient } from "./completion-client.ts";
import type { WorkloadPrompts } from "./workload-prompts.ts";

/** How a workload is sent. */
export interface Sending {
  readonly workload: Workload;
  readonly client: CompletionClient;
  readonly prompts: WorkloadPrompts;
  /** By how much time is compressed: gaps and think times are that much shorter. */
  readonly speedup: number;
}

/** A request that was answered; times are real. */
export interface Served extends Answer {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** When it was sent, from the start. */
  readonly sentAtMs: number;
}

/** What became of a workload's requests. */
export interface Traffic {
  /** In the order in which they were sent. */
  readonly served: readonly Served[];
  /** One message per request that failed. */
  readonly errors: readonly string[];
  /** How late the client itself sent each request. */
  readonly sendDelaysMs: readonly number[];
  readonly elapsedMs: number;
}

/** Prompts are made so long before they are sent: long enough to make one, too short to pile them up. */
const AHEAD_MS = 50;

/**
 * Sends a workload in real time. Arrivals leave at their time, whatever became of those before; next turns after the
 * answer, or the failure, and the think time.
 */
export async function sendWorkload({ workload, client, prompts, speedup }: Sending): Promise<Traffic> {
  const served: Served[] = [];
  const errors: string[] = [];
  const sendDelaysMs: number[] = [];
  const startMs = performance.now();
  const elapsedMs = (): number => performance.now() - startMs;
  const until = async (dueMs: number): Promise<void> => {
    const waitMs = dueMs - elapsedMs();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
  };

  const converse = async (request: WorkloadRequest, dueMs: number): Promise<void> => {
    // As in the simulator: there is no empty prompt, and an answer has its end at least.
    const promptTokens = Math.max(1, request.promptTokens);
    const outputTokens = Math.max(1, request.outputTokens);
    const prompt = prompts.text(request);
    await until(dueMs);
    const sentAtMs = elapsedMs();
    sendDelaysMs.push(sentAtMs - dueMs);
    await client.ask({ prompt, promptTokens, outputTokens, sessionKey: request.sessionKey }).then(
      (answer) => void served.push({ ...answer, promptTokens, outputTokens, sentAtMs }),
      (error: Error) => void errors.push(error.message),
    );
    const { next } = request;
    if (next !== undefined) await converse(next.request, elapsedMs() + next.thinkMs / speedup);
  };

  const conversations: Promise<void>[] = [];
  for (const { atMs, request } of workload.arrivals) {
    const dueMs = atMs / speedup;
    await until(dueMs - AHEAD_MS);
    conversations.push(converse(request, dueMs));
  }
  await Promise.all(conversations);
  served.sort((a, b) => a.sentAtMs - b.sentAtMs);
  return { served, errors, sendDelaysMs, elapsedMs: elapsedMs() };
}
