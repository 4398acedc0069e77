import { buildConnector, errors } from "undici";
import type { EndpointConfig, HostAddresses } from "../../runtime/index.ts";
import { LeanSocket } from "./lean-socket.ts";

/**
 * Opens connections to an endpoint.
 * @param connectMs undefined: as long as the kernel tries.
 * @param addresses undefined: its host is an address itself.
 */
export function connector(
  endpoint: EndpointConfig,
  connectMs: number | undefined,
  addresses: HostAddresses | undefined,
): buildConnector.connector {
  const connect = endpoint.url.startsWith("https:")
    ? tlsConnector(endpoint, connectMs, addresses)
    : tcpConnector(connectMs, addresses);
  if (addresses === undefined) return connect;
  // A connection that fails at the addresses known of a name is tried once more at those it has by now, if they are others.
  return (target, callback) => {
    connect(target, (...result) => {
      const [error] = result;
      if (error === null) return callback(...result);
      void addresses.renew().then((isMoved) => (isMoved ? connect(target, callback) : callback(...result)));
    });
  };
}

function tlsConnector(
  { tls }: EndpointConfig,
  connectMs: number | undefined,
  addresses: HostAddresses | undefined,
): buildConnector.connector {
  return buildConnector({
    timeout: connectMs ?? 0,
    ...(addresses && { lookup: addresses.lookup }),
    ...(tls && {
      ca: tls.ca,
      cert: tls.cert,
      key: tls.key?.reveal(),
      rejectUnauthorized: tls.isVerified,
      ...(tls.serverName !== undefined && { servername: tls.serverName }),
    }),
  });
}

function tcpConnector(connectMs: number | undefined, addresses: HostAddresses | undefined): buildConnector.connector {
  return ({ hostname, port }, callback) => {
    const socket = new LeanSocket();
    const timer =
      connectMs === undefined ? undefined : setTimeout(() => socket.destroy(timedOut(connectMs)), connectMs);
    const failed = (error: Error): void => {
      clearTimeout(timer);
      callback(error, null);
    };
    socket.once("error", failed);
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.off("error", failed);
      callback(null, socket);
    });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_AFTER_MS);
    socket.connect({ host: hostname, port: Number(port) || 80, ...(addresses && { lookup: addresses.lookup }) });
  };
}

/** As undici's own connector does, so that both kinds of connection notice a peer that vanished alike. */
const KEEP_ALIVE_PROBE_AFTER_MS = 60_000;

function timedOut(connectMs: number): Error {
  return new errors.ConnectTimeoutError(`no connection within ${connectMs} ms`);
}
