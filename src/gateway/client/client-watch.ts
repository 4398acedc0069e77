import type { ServerResponse } from "node:http";

/** What the watch over a client needs of the exchange. */
export interface ClientWatcher {
  /** Writes something that means nothing to the client, if the state of the answer allows it. */
  knock(): void;
  /** The client is gone and its answer is not complete. Called once at most. */
  clientLeft(): void;
}

/**
 * Tells when the client of an answer has left. The answer's side alone knows: the request's side closes when its body
 * was read. A client that closed only its sending side may still read (RFC 9112, 9.6) or may have closed all of
 * it, which looks the same until something is written: a closed socket answers with a reset, and the write after that
 * fails.
 */
export function watchClient(response: ServerResponse, watcher: ClientWatcher): void {
  const { socket } = response.req;
  let timer: NodeJS.Timeout | undefined;
  const knockAfter = (waitMs: number): void => {
    timer = setTimeout(() => {
      watcher.knock();
      if (waitMs < LAST_WAIT_MS) knockAfter(2 * waitMs);
    }, waitMs);
  };
  const halfClosed = (): void => knockAfter(FIRST_WAIT_MS);
  if (socket.readableEnded) halfClosed();
  else socket.on("end", halfClosed);
  response.on("close", () => {
    socket.off("end", halfClosed);
    clearTimeout(timer);
    if (!response.writableFinished) watcher.clientLeft();
  });
}

/** Answers that come sooner need no knock; the second one, at three times this, notices a client next door. */
const FIRST_WAIT_MS = 40;
/** Longer than any round trip: who has not reset the connection by then reads on. */
const LAST_WAIT_MS = 1_280;
