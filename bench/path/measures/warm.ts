import { Contender } from "../contender.ts";
import type { Peer } from "../peer.ts";
import type { Bench } from "../run.ts";

/** Enough for just-in-time compilers and connection pools to settle. */
const WARM_UP_SECONDS = 3;

/** Starts a peer and puts the request load on it for some seconds. @param place What differs from the bench's own. */
export async function startWarm(
  bench: Bench,
  peer: Peer,
  place: { readonly originPorts?: readonly number[]; readonly scratch?: string } = {},
): Promise<Contender> {
  const { originPorts = bench.origins.ports, scratch = bench.scratch } = place;
  const contender = await Contender.start(peer, originPorts, scratch);
  // One that is still getting to know its endpoints may be late; one that is broken fails in what is measured as well.
  await contender.measure((port) => bench.requests.run(port, WARM_UP_SECONDS, contender.client)).catch(() => {});
  return contender;
}
