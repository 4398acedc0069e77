import { connect, type Socket } from "node:net";
import type { ClientSettings } from "../peer.ts";
import { requestText } from "../raw-request.ts";
import { EVENT, requestBody } from "../workload.ts";

/**
 * Opens streams and keeps them, in a process of its own. Started with `fork`; its arguments are the port, the number of
 * streams and further headers as JSON, its message is how many are open, each of which has shown its first event. It ends when it is disconnected.
 */
async function openAll(port: number, count: number, headers: ClientSettings["headers"]): Promise<number> {
  const request = requestText(requestBody(true), headers);
  const sockets: Socket[] = [];
  let asked = 0;
  const withCount = (error: Error): never => {
    throw new Error(`${error.message}; ${sockets.length} streams were open`);
  };
  const openSome = async (): Promise<void> => {
    while (asked < count) {
      asked++;
      sockets.push(await openStream(port, request).catch(withCount));
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, openSome));
  return sockets.filter((socket) => !socket.destroyed).length;
}

/** Streams that have not shown their first event yet: a queue of so many fits any listener. */
const AT_A_TIME = 100;
const PATIENCE_MS = 20_000;

/** Resolves with the first event. @throws when the answer is none, or does not come. */
function openStream(port: number, request: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => socket.write(request));
    let text = "";
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error("no event came")));
    socket.on("data", (data: Buffer) => {
      text += data.toString("latin1");
      if (!text.includes(EVENT.trim())) return;
      socket.setTimeout(0);
      resolve(socket);
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`closed after: ${text.slice(0, SHOWN)}`)));
  });
}

const SHOWN = 200;

// Whoever started it is told by the end of its process when that fails.
process.on("disconnect", () => process.exit());
const [, , port, count, headers = ""] = process.argv;
process.send?.(await openAll(Number(port), Number(count), JSON.parse(headers)));
