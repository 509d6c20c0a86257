import { createAddressRules } from '../../infra/safe-http/addresses.ts'
import { createWebhookClient } from '../../infra/safe-http/client.ts'
import type { GateOptions } from '../gate/context.ts'
import { createConsentKeys } from '../organizations/consent-keys.ts'
import { signUpOrganization } from '../organizations/sign-up.ts'
import { createDirectCalls } from '../webhooks/direct/direct-calls.ts'
import { createSigningSecrets } from '../webhooks/signing-secrets.ts'
import type { Core } from './dependencies.ts'

/** How long a person who has approved waits for one answer of the service, at most (open-points.md 37). */
const integratorTimeoutMs = 10_000

/** What Gate is given of the other services. `publicUrl` has no path, and no slash at its end. */
export function gateOptions(core: Core, publicUrl: string): GateOptions {
  const { config, keyring, decide } = core
  const { WEBHOOK_TIMEOUT_MS: timeoutMs } = config
  const client = createWebhookClient({
    rules: createAddressRules(config.WEBHOOK_ALLOWED_NETWORKS),
    timeoutMs,
  })
  return {
    ...core,
    publicUrl,
    leaseMs: config.WEBHOOK_LEASE_MS,
    integratorTimeoutMs: Math.min(integratorTimeoutMs, timeoutMs),
    directCalls: createDirectCalls({ ...core, client, secrets: createSigningSecrets(keyring) }),
    endCalls: client.close,
    consentKeys: createConsentKeys({ ...core, publicUrl }),
    signUpOrganization: ({ random, now, ...signup }) =>
      signUpOrganization({ decide, keyring, clock: () => now, random, idTime: now }, signup),
  }
}
