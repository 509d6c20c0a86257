import { webhookEndpointsLock } from '../../../infra/access/organization.ts'
import type { Keyring } from '../../../infra/crypto/keyring.ts'
import { type CommandDeps, newId } from '../../../infra/event-store/decide.ts'
import { type EndpointId, type Random, randomHexId } from '../../../infra/ids.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import type { AddressRules } from '../../../infra/safe-http/addresses.ts'
import {
  generateSigningSecret,
  openSigningSecret,
  sealSigningSecret,
} from '../../../infra/wire/webhooks/signature.ts'
import { findServiceIdsByEndpoint } from '../../../projections/gate/queries.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import {
  countActiveEndpoints,
  findEndpoint,
  type WebhookScope,
} from '../../../projections/webhooks/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import { eventTopics } from '../../../schemas/events.ts'
import {
  canEndApprovals,
  decideEndpointCreation,
  decideEndpointUpdate,
  decideSecretRotation,
  type EndpointsState,
} from './decide.ts'
import {
  checkedEndpointChanges,
  checkedEndpointSpec,
  type EndpointChanges,
  type EndpointRequest,
} from './schemas.ts'

export type EndpointDeps = CommandDeps & { rules: AddressRules }

export interface EndpointPath extends WebhookScope {
  endpointId: string
}

/** Throws the errors of `decideEndpointCreation`, and 422 naming the invalid fields. */
export async function createEndpoint(
  { rules, ...deps }: EndpointDeps,
  { organizationId, environment, ...request }: EndpointRequest & WebhookScope,
): Promise<{ endpointId: EndpointId; signingSecret: string }> {
  const spec = checkedEndpointSpec(request, rules)
  const now = deps.clock()
  const endpointId = randomHexId('we', deps.random)
  const path = { organizationId, environment, endpointId }
  const { signingSecret, sealedSecret } = generateSecret(deps, endpointId)
  await deps.decide({
    ...endpointDecisionOptions(organizationId),
    load: (tx) => load(tx, path),
    decide: (state) => decideEndpointCreation(state, { ...path, spec, sealedSecret, now }),
  })
  return { endpointId, signingSecret }
}

/** Throws the errors of `decideEndpointUpdate`, and 422 naming the invalid fields. */
export async function updateEndpoint(
  { decide, clock, rules, ...deps }: Omit<EndpointDeps, 'keyring'>,
  { organizationId, environment, endpointId, ...fields }: EndpointPath & EndpointChanges,
): Promise<void> {
  const changes = checkedEndpointChanges(fields, rules)
  const now = clock()
  const changeId = newId('evt', { ...deps, now })
  await decide({
    ...endpointDecisionOptions(organizationId),
    ...(canEndApprovals(changes) && alsoReadsServices),
    load: (tx) => load(tx, { organizationId, environment, endpointId }),
    decide: (state) => decideEndpointUpdate(state, { changes, changeId, now }),
  })
}

/** Throws the errors of `decideSecretRotation`. */
export async function rotateSecret(
  { decide, clock, ...deps }: CommandDeps,
  path: EndpointPath,
): Promise<{ signingSecret: string }> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  const { signingSecret, sealedSecret } = generateSecret(deps, path.endpointId)
  await decide({
    ...endpointDecisionOptions(path.organizationId),
    load: async (tx) => {
      const state = await load(tx, path)
      const { endpoint } = state
      return {
        ...state,
        isRepeat: endpoint !== undefined && hasSecret(endpoint, { ...deps, signingSecret }),
      }
    },
    decide: (state) => decideSecretRotation(state, { sealedSecret, eventId, now }),
  })
  return { signingSecret }
}

// `services` can be stale unless the decision has the options `alsoReadsServices`.
async function load(tx: Tx, path: EndpointPath): Promise<EndpointsState> {
  return {
    organization: await findOrganization(tx, path.organizationId),
    endpoint: await findEndpoint(tx, path),
    activeCount: await countActiveEndpoints(tx, path.organizationId),
    services: await findServiceIdsByEndpoint(tx, path.endpointId),
  }
}

/** Options of a decision about an endpoint. The lock is per organization, because the decision counts endpoints. */
export function endpointDecisionOptions(organizationId: string) {
  return {
    topic: eventTopics.WebhookEndpointCreated,
    projection: 'webhooks',
    key: organizationId,
    locks: [webhookEndpointsLock(organizationId)],
  }
}

/** Options of a decision that also reads the Gate services of the endpoint, which can be in any partition. */
export const alsoReadsServices = {
  alsoReads: [{ projection: 'gate', topic: eventTopics.GateServiceRegistered }],
}

export function generateSecret(
  { keyring, random }: { keyring: Keyring; random: Random },
  endpointId: string,
) {
  const signingSecret = generateSigningSecret(random)
  const sealedSecret = sealSigningSecret({ keyring, random, secret: signingSecret, endpointId })
  return { signingSecret, sealedSecret }
}

/** Compares plaintext, because a repeated command may encrypt the secret with a newer master key. */
export function hasSecret(
  { id, secrets }: EndpointRow,
  { keyring, signingSecret }: { keyring: Keyring; signingSecret: string },
): boolean {
  return secrets.some(({ sealed }) => {
    try {
      return openSigningSecret({ keyring, sealed, endpointId: id }) === signingSecret
    } catch {
      // The master key is gone, so the secret is not the one of this command.
      return false
    }
  })
}
