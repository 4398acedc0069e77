import type { Peer } from "./peer.ts";
import type { Bench } from "./run.ts";

/** How peers are measured side by side; an entrant is a peer in whatever state its samples are taken from. */
export interface Course<Entrant, Sample> {
  readonly rounds: number;
  /** Once per peer, before the first round. @param version The peer's, installed by then. */
  enter(peer: Peer, version: string): Promise<Entrant>;
  /** Once per peer and round. */
  sample(entrant: Entrant, round: number): Promise<Sample>;
  /** Once per peer that entered: at the end, or when it fails. */
  leave(entrant: Entrant): Promise<void>;
}

/** What came of one peer. */
export interface Lane<Sample> {
  readonly name: string;
  /** One per round. */
  readonly samples: readonly Sample[];
  /** Undefined: it did not fail. */
  readonly failure: string | undefined;
}

interface OpenLane<Entrant, Sample> {
  readonly peer: Peer;
  readonly samples: Sample[];
  entrant: Entrant | undefined;
  failure: string | undefined;
}

/** Measures all peers in every round, beginning with another one each time. Whoever fails is out; the others go on. */
export async function sideBySide<Entrant, Sample>(
  { progress }: Pick<Bench, "progress">,
  peers: readonly Peer[],
  course: Course<Entrant, Sample>,
): Promise<Lane<Sample>[]> {
  type Open = OpenLane<Entrant, Sample>;
  const lanes = peers.map((peer): Open => ({ peer, samples: [], entrant: undefined, failure: undefined }));
  const leave = async (lane: Open): Promise<void> => {
    const { entrant } = lane;
    lane.entrant = undefined;
    if (entrant !== undefined) await course.leave(entrant);
  };
  const attempt = async (lane: Open, step: () => Promise<void>): Promise<void> => {
    if (lane.failure !== undefined) return;
    try {
      await step();
    } catch (error) {
      lane.failure = (error as Error).message;
      progress(`${lane.peer.name} failed: ${lane.failure}`);
      // Its work would only disturb the others.
      await leave(lane);
    }
  };
  try {
    for (const lane of lanes) {
      await attempt(lane, async () => {
        lane.entrant = await course.enter(lane.peer, await lane.peer.install());
      });
    }
    for (let round = 0; round < course.rounds; round++) {
      progress(`round ${round + 1} of ${course.rounds}`);
      for (let i = 0; i < lanes.length; i++) {
        const lane = lanes[(round + i) % lanes.length] as Open;
        await attempt(lane, async () => {
          lane.samples.push(await course.sample(lane.entrant as Entrant, round));
        });
      }
    }
  } finally {
    await Promise.all(lanes.map(leave));
  }
  return lanes.map(({ peer: { name }, samples, failure }) => ({ name, samples, failure }));
}

/** A line per peer that failed. */
export function failureLines(lanes: readonly Lane<unknown>[]): string[] {
  return lanes.flatMap(({ name, failure }) => (failure === undefined ? [] : [`${name} FAILED: ${failure}`]));
}
