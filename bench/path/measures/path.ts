import { pathVerdicts } from "../path-verdicts.ts";
import { pathText } from "../report.ts";
import { runPath } from "../run.ts";
import type { Measure } from "./measure.ts";

/** CPU per request and per streamed event, beside all peers. */
export const path: Measure = {
  name: "path",
  async run({ bench, peers, recordPeers, rounds }) {
    const result = await runPath(bench, [...peers, ...recordPeers], rounds);
    return {
      verdicts: pathVerdicts(result),
      text: pathText(result),
      result,
      hasFailed: result.peers.some(({ failure }) => failure !== undefined),
    };
  },
};
