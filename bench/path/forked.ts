import { fork } from "node:child_process";
import { once } from "node:events";

/** Runs a program of ours in a process of its own. @returns its one message. @throws when it ends without one. */
export async function messageOf<Message>(program: URL, ...args: string[]): Promise<Message> {
  const child = fork(program, args);
  const exited = once(child, "exit");
  // On a busy machine the exit can be seen before the message; the end of the channel never is.
  const ended = once(child, "disconnect").then(() => [undefined]);
  const [message] = await Promise.race([once(child, "message"), ended]);
  await exited;
  if (message === undefined) throw new Error(`${program.pathname} ended without a result`);
  return message as Message;
}
