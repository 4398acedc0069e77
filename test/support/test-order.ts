import type { HoldOrder, Tenant } from "../../src/core/index.ts";

/** A tenant whose counts are what the test says. */
export class TestTenant implements Tenant {
  servedTokens = 0;
  claimedTokens = 0;

  /** As many as the prompt. */
  costOf({ promptTokens }: { readonly promptTokens: number }): number {
    return promptTokens;
  }
  arrived(): void {}
  held(): void {}
  left(): void {}
  charge(_promptTokens: number, _outputTokens: number): void {}
}

/** Three urgencies, by priority, and tenants by name. */
export class TestOrder implements HoldOrder {
  readonly topUrgency = 2;
  readonly #tenants = new Map<string | undefined, TestTenant>();

  urgencyOf({ priority }: Parameters<HoldOrder["urgencyOf"]>[0]): number {
    return ["low", "normal", "high"].indexOf(priority);
  }

  tenantOf({ tenant }: Parameters<HoldOrder["tenantOf"]>[0]): TestTenant {
    return this.tenant(tenant);
  }

  tenant(name: string | undefined): TestTenant {
    let tenant = this.#tenants.get(name);
    if (tenant === undefined) {
      tenant = new TestTenant();
      this.#tenants.set(name, tenant);
    }
    return tenant;
  }
}
