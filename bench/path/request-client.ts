import { connect, type Socket } from "node:net";
import { longPrompts } from "./long-prompts.ts";
import { requestText } from "./raw-request.ts";
import { requestBody } from "./workload.ts";

/** What the request client is to send. */
export interface RequestPlan {
  readonly port: number;
  /** "small": the body of the request phase; "long": those of 400 kB, in turn. */
  readonly bodies: "small" | "long";
  readonly connections: number;
  /** On all connections together. */
  readonly requests: number;
  /** From one request of a connection to its next, at least; 0: as fast as answers come. */
  readonly gapMs: number;
}

/**
 * A client that sends an exact number of requests, on raw sockets in a process of its own. Started with `fork` and its
 * plan as JSON; its message is the number of answers, all of them 200. It ends without one when something went wrong.
 */
async function send(plan: RequestPlan): Promise<number> {
  const bodies = plan.bodies === "small" ? [requestBody(false)] : longPrompts().map(({ body }) => body);
  const messages = bodies.map((body) => Buffer.from(requestText(body)));
  const each = Math.ceil(plan.requests / plan.connections);
  const sent = await Promise.all(
    Array.from({ length: plan.connections }, async (_, index) => {
      // Their requests are not to come all at once.
      await sleep((index * plan.gapMs) / plan.connections);
      return sendOnOne(plan, each, (i) => messages[(index + i) % messages.length] as Buffer);
    }),
  );
  return sent.reduce((total, count) => total + count, 0);
}

async function sendOnOne(
  { port, gapMs }: RequestPlan,
  count: number,
  messageAt: (i: number) => Buffer,
): Promise<number> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const startMs = performance.now();
  try {
    for (let i = 0; i < count; i++) {
      if (gapMs > 0) await sleep(startMs + i * gapMs - performance.now());
      socket.write(messageAt(i));
      await wholeAnswer(socket);
    }
  } finally {
    socket.destroy();
  }
  return count;
}

/** Resolves when an answer with a declared length is complete. @throws when it is another, or its status is not 200. */
function wholeAnswer(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = "";
    const end = (error?: Error): void => {
      socket.off("data", read).off("error", end).off("close", closed);
      if (error === undefined) resolve();
      else reject(error);
    };
    const closed = (): void => end(new Error("the connection was closed"));
    const read = (data: Buffer): void => {
      text += data.toString("latin1");
      const bodyStart = text.indexOf("\r\n\r\n") + 4;
      if (bodyStart < 4) return;
      const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
      if (!text.startsWith("HTTP/1.1 200 ") || length === undefined)
        end(new Error(`answered ${text.split("\r\n", 1)[0]}`));
      else if (text.length >= bodyStart + Number(length)) end();
    };
    socket.on("data", read).on("error", end).on("close", closed);
  });
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

process.send?.(await send(JSON.parse(process.argv[2] ?? "") as RequestPlan), () => process.exit());
