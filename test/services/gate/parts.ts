import { noNetwork } from '../../../infra/ip/network.ts'
import type {
  Approvals,
  GateContext,
  GateOptions,
  GateParts,
} from '../../../services/gate/context.ts'
import { createGateLimits } from '../../../services/gate/limits.ts'
import { createPages } from '../../../services/gate/store.ts'
import { createVault } from '../../../services/gate/vault.ts'
import { signUpOrganization } from '../../../services/organizations/sign-up.ts'
import { createSigningSecrets } from '../../../services/webhooks/deliveries/attempt.ts'
import { createDirectCalls } from '../../../services/webhooks/direct-calls.ts'
import { type createServiceApp, publicUrl } from '../../support/service-app.ts'
import type { ServiceWorld } from '../../support/service-world.ts'

/** What Gate is started with, over the world; no domain shows anything, and no receiver answers. */
export function gateOptions(world: ServiceWorld, changes: Partial<GateOptions> = {}): GateOptions {
  const { deps, log, codec, applied } = world
  const client = { post: async () => Promise.reject(new Error('no receiver')) }
  return {
    ...deps,
    applied,
    log,
    publicUrl,
    leaseMs: 3000,
    integratorTimeoutMs: 10_000,
    directCalls: createDirectCalls({
      ...deps,
      log,
      codec,
      client,
      secrets: createSigningSecrets(deps.keyring),
    }),
    network: noNetwork,
    domainReader: { txtRecords: async () => [], fileAt: async () => undefined },
    consentKeys: { publishableKey: async () => 'pk_live_x', secretHashes: async () => [] },
    signUpOrganization: ({ startedAt, ...signup }) =>
      signUpOrganization({ ...deps, idTime: startedAt }, signup),
    eraseSession: async () => false,
    eraseSessions: async () => {},
    retentionMs: Number.MAX_SAFE_INTEGER,
    ...changes,
  }
}

export function gateParts(options: GateOptions): GateParts {
  const { pool } = options
  return {
    ...options,
    vault: createVault(options),
    pages: createPages(options),
    limits: createGateLimits(pool),
  }
}

/** Nobody works on approvals. */
const approvals: Approvals = {
  run() {},
  outcome: async () => undefined,
  stop: async () => {},
}

/** What routes of Gate take, over an app of the world. */
export function gateContext(
  parts: GateParts,
  { auth, idempotency, decideByKey }: Awaited<ReturnType<typeof createServiceApp>>['context'],
): GateContext {
  return {
    ...parts,
    approvals,
    auth,
    idempotency,
    decideByKey,
    readCurrent: (read) => read(),
    depsOf: ({ random, now }, decide) => ({ ...parts, decide, random, idTime: now }),
  }
}
