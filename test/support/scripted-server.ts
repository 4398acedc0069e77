import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** What a scripted server answers on one path. */
export type Script = (request: IncomingMessage, response: ServerResponse) => void;

/** A server on a free port whose answers are set by path and may be changed while it runs. */
export interface ScriptedServer {
  readonly url: string;
  /** By path; a path without one answers 404. */
  readonly scripts: Map<string, Script>;
  /** Method and path of each request so far, as `GET /health`. */
  readonly requests: string[];
  openSockets(): number;
  close(): Promise<void>;
}

/** Answers `status` with `body`: text as it is, anything else as JSON. */
export function answer(status: number, body: unknown = "", headers: Readonly<Record<string, string>> = {}): Script {
  return (_request, response) => {
    response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

/** Takes the request and never answers. */
export const hold: Script = () => {};

export async function startScriptedServer(scripts: Readonly<Record<string, Script>>): Promise<ScriptedServer> {
  const table = new Map(Object.entries(scripts));
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const listener: RequestListener = (request, response) => {
    const path = request.url ?? "";
    requests.push(`${request.method} ${path}`);
    (table.get(path) ?? answer(404, { error: "not found" }))(request, response);
  };
  const server = createServer(listener);
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    scripts: table,
    requests,
    openSockets: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
