import type { Serializable } from "node:child_process";

/** One end of a channel between two processes. */
export interface ExchangePort {
  /** @param sent Called once the message is on its way, or cannot be sent. */
  send(message: unknown, sent: () => void): void;
  /** The one who is told what comes; a later one takes its place. */
  onMessage(listener: (message: unknown) => void): void;
  close(): void;
}

/** A process at the other end of Node's IPC: `process` in a worker, a `cluster.Worker` or `ChildProcess` in its primary. */
export interface IpcPeer {
  send?(message: Serializable, handle: undefined, options: undefined, sent: (error: Error | null) => void): boolean;
  on(event: "message", listener: (message: unknown) => void): unknown;
  off(event: "message", listener: (message: unknown) => void): unknown;
}

/** The channel may carry other messages too: those are not looked at here. Its serialization must be `advanced`. */
export function ipcPort(peer: IpcPeer): ExchangePort {
  let listener: ((message: unknown) => void) | undefined;
  const hear = (message: unknown): void => listener?.(message);
  peer.on("message", hear);
  return {
    send(message, sent) {
      // Without a channel, or once it is closed, it says so by an error that nothing can be done about.
      if (peer.send === undefined) sent();
      else peer.send(message as Serializable, undefined, undefined, sent);
    },
    onMessage(next) {
      listener = next;
    },
    close() {
      peer.off("message", hear);
    },
  };
}
