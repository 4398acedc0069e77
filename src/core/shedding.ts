import type { Tenant } from "./hold-order.ts";
import type { HoldingClass } from "./holding-class.ts";
import type { HoldingLine } from "./holding-line.ts";
import type { Ticket } from "./ticket.ts";

/**
 * Who has to go where one too many would be held: of the least urgent, of the tenant that claims most, who came last.
 * Undefined: the newcomer.
 *
 * A tenant claims what it got and what it already waits for, so that one that floods the holding displaces itself, and
 * one that asks for little is let in though everybody got the same. A newcomer displaces nobody of its own urgency for
 * being the smaller request: what counts is what their tenants claim but for the two.
 */
export function worstOf(newcomer: Ticket, lines: Iterable<HoldingLine>): Ticket | undefined {
  const classes = leastUrgent(lines, newcomer.urgency);
  const isRival = (classes[0]?.urgency ?? newcomer.urgency) === newcomer.urgency;
  const tenant = greediest(classes, isRival ? newcomer : undefined);
  const last = tenant && lastOf(tenant, classes, isRival ? newcomer : undefined);
  if (last === undefined || !isRival) return last;
  if (tenant === newcomer.tenant) return cameLater(last, newcomer) ? last : undefined;
  return last.tenant.claimedTokens - last.tenant.costOf(last.request) > newcomer.tenant.claimedTokens
    ? last
    : undefined;
}

/** The classes of the least urgency that anybody has, up to `urgency`; empty: nobody is held who is no more urgent. */
function leastUrgent(lines: Iterable<HoldingLine>, urgency: number): readonly HoldingClass[] {
  let least: HoldingClass[] = [];
  let leastUrgency = urgency;
  for (const { classes } of lines) {
    const last = classes.at(-1);
    if (last === undefined || last.urgency > leastUrgency) continue;
    if (last.urgency < leastUrgency) least = [];
    leastUrgency = last.urgency;
    least.push(last);
  }
  return least;
}

/** The tenant that claims most, the newcomer's own if it claims as much; the newcomer is among them if it is their rival. */
function greediest(classes: readonly HoldingClass[], newcomer: Ticket | undefined): Tenant | undefined {
  let most: Tenant | undefined = newcomer?.tenant;
  let mostTokens = newcomer === undefined ? Number.NEGATIVE_INFINITY : claimOf(newcomer);
  for (const { byTenant } of classes) {
    for (const tenant of byTenant.keys()) {
      if (tenant.claimedTokens <= mostTokens || tenant === newcomer?.tenant) continue;
      most = tenant;
      mostTokens = tenant.claimedTokens;
    }
  }
  return most;
}

/** What the tenant of a newcomer would claim with it. */
function claimOf({ tenant, request }: Ticket): number {
  return tenant.claimedTokens + tenant.costOf(request);
}

/** Of the tenant's, whoever came last; a newcomer that has just come spares a look at those of its own tenant. */
function lastOf(tenant: Tenant, classes: readonly HoldingClass[], newcomer: Ticket | undefined): Ticket | undefined {
  if (tenant === newcomer?.tenant && newcomer.arrivedAtMs === newcomer.heldAtMs) return undefined;
  let last: Ticket | undefined;
  for (const { byTenant } of classes) {
    for (const ticket of byTenant.get(tenant)?.tickets ?? []) {
      if (last === undefined || cameLater(ticket, last)) last = ticket;
    }
  }
  return last;
}

function cameLater(one: Ticket, other: Ticket): boolean {
  return one.arrivedAtMs > other.arrivedAtMs || (one.arrivedAtMs === other.arrivedAtMs && one.number > other.number);
}
