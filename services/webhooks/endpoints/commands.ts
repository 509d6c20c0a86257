import { endpointsLock } from '../../../infra/access/organization.ts'
import type { Keyring } from '../../../infra/crypto/keyring.ts'
import { type CommandDeps, newId } from '../../../infra/event-store/decide.ts'
import { type EndpointId, hexId, type Random } from '../../../infra/ids.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import type { AddressRules } from '../../../infra/safe-http/addresses.ts'
import {
  generateSigningSecret,
  openSigningSecret,
  sealSigningSecret,
} from '../../../infra/wire/webhooks/signature.ts'
import { activeServicesAt } from '../../../projections/gate/queries.ts'
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
  completeEndpointChanges,
  completeEndpointRequest,
  type EndpointChanges,
  type EndpointRequest,
} from './schemas.ts'

export type EndpointDeps = CommandDeps & { rules: AddressRules }

export interface EndpointPath extends WebhookScope {
  endpointId: string
}

// These commands throw the errors of decide.ts, and 422 of schemas.ts.

export async function createEndpoint(
  { rules, ...deps }: EndpointDeps,
  { organizationId, environment, ...request }: EndpointRequest & WebhookScope,
): Promise<{ endpointId: EndpointId; signingSecret: string }> {
  const spec = completeEndpointRequest(request, rules)
  const now = deps.clock()
  const endpointId = hexId('we', deps.random)
  const path = { organizationId, environment, endpointId }
  const { signingSecret, sealedSecret } = generateSecret(deps, endpointId)
  await deps.decide({
    ...endpointDecision(organizationId),
    load: (tx) => load(tx, path),
    decide: (state) => decideEndpointCreation(state, { ...path, spec, sealedSecret, now }),
  })
  return { endpointId, signingSecret }
}

export async function updateEndpoint(
  { decide, clock, rules, ...deps }: Omit<EndpointDeps, 'keyring'>,
  { organizationId, environment, endpointId, ...fields }: EndpointPath & EndpointChanges,
): Promise<void> {
  const changes = completeEndpointChanges(fields, rules)
  const now = clock()
  const changeId = newId('evt', { ...deps, now })
  await decide({
    ...endpointDecision(organizationId),
    ...(canEndApprovals(changes) && readsServices),
    load: (tx) => load(tx, { organizationId, environment, endpointId }),
    decide: (state) => decideEndpointUpdate(state, { changes, changeId, now }),
  })
}

export async function rotateSecret(
  { decide, clock, ...deps }: CommandDeps,
  path: EndpointPath,
): Promise<{ signingSecret: string }> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  const { signingSecret, sealedSecret } = generateSecret(deps, path.endpointId)
  await decide({
    ...endpointDecision(path.organizationId),
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

// `services` is complete only in decisions with `readsServices`.
async function load(tx: Tx, path: EndpointPath): Promise<EndpointsState> {
  return {
    organization: await findOrganization(tx, path.organizationId),
    endpoint: await findEndpoint(tx, path),
    active: await countActiveEndpoints(tx, path.organizationId),
    services: await activeServicesAt(tx, path.endpointId),
  }
}

/** Returns the options of a decision about endpoints. The lock is per organization, because endpoints are counted. */
export function endpointDecision(organizationId: string) {
  return {
    topic: eventTopics.WebhookEndpointCreated,
    projection: 'webhooks',
    key: organizationId,
    locks: [endpointsLock(organizationId)],
  }
}

/** Options of decisions that may end approvals: they also read the Gate services of the endpoint, in any partition. */
export const readsServices = {
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

/**
 * Returns true if the secret is one of the endpoint's. Compares plaintext, because a repeat may use a newer master key.
 */
export function hasSecret(
  { id, secrets }: EndpointRow,
  { keyring, signingSecret }: { keyring: Keyring; signingSecret: string },
): boolean {
  return secrets.some(({ sealed }) => {
    try {
      return openSigningSecret({ keyring, sealed, endpointId: id }) === signingSecret
    } catch {
      // Encrypted under a master key that is gone, so it is not the secret of this command.
      return false
    }
  })
}
