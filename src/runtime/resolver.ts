import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";

/** Turns names of hosts into addresses. */
export interface Resolver {
  /** At least one address. @throws when the name has none, or cannot be resolved now. */
  resolve(host: string): Promise<readonly string[]>;
}

/**
 * As the system resolves names: its hosts file and the search domains of a cluster count, which a bare DNS query would
 * leave out. A host of both families counts by its IPv4 addresses, so that none is taken for two.
 */
export const systemResolver: Resolver = {
  async resolve(host) {
    const found = await lookup(host, { all: true });
    const [v4, v6] = [4, 6].map((version) => found.filter(({ family }) => family === version));
    return (v4 !== undefined && v4.length > 0 ? v4 : (v6 ?? [])).map(({ address }) => address);
  },
};

/** `addressesOf` in the form that Node's sockets ask in. */
export function lookupBy(addressesOf: (host: string) => Promise<readonly string[]>): LookupFunction {
  return (host, options, callback) => {
    addressesOf(host).then(
      (found) => {
        const addresses = found.map((address) => ({ address, family: isIP(address) }));
        const [first] = addresses;
        if (first === undefined) callback(noAddress(host), []);
        else if (options.all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
}

function noAddress(host: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`no address of ${host}`), { code: "ENOTFOUND" });
}
