import type { Answers, Question } from "./messages.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** What one of several answered, or why it did not. */
export type Answered<Kind extends Question["kind"]> = { readonly worker: WorkerProcess } & (
  | { readonly ok: true; readonly answer: Answers[Kind] }
  | { readonly ok: false; readonly error: Error }
);

/** Asks all of them the same at the same time. */
export function askEach<Asked extends Question>(
  workers: readonly WorkerProcess[],
  question: Asked,
): Promise<readonly Answered<Asked["kind"]>[]> {
  return Promise.all(
    workers.map((worker) =>
      worker.ask(question).then(
        (answer) => ({ worker, ok: true, answer }) as const,
        (error: Error) => ({ worker, ok: false, error }) as const,
      ),
    ),
  );
}
