import { type CommandDeps, newId } from '../../../infra/event-store/decide.ts'
import { type EndpointId, hexId } from '../../../infra/ids.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import type { AddressRules } from '../../../infra/safe-http/addresses.ts'
import { servicesToldAt } from '../../../projections/gate/queries.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import { countActiveEndpoints, findEndpoint } from '../../../projections/webhooks/queries.ts'
import type { Environment } from '../../../schemas/events.ts'
import {
  completeEndpointRequest,
  createEndpoint as decideCreation,
  type EndpointRequest,
} from './create-endpoint.ts'
import { disableEndpoint as decideDisabling } from './disable-endpoint.ts'
import type { EndpointName, EndpointsState } from './endpoint-state.ts'
import { generateSecret, hasSecret } from './new-secret.ts'
import { rotateSecret as decideRotation } from './rotate-secret.ts'
import { endpointsOf, seesServices } from './stream.ts'
import {
  completeEndpointChanges,
  updateEndpoint as decideUpdate,
  type EndpointChanges,
  mayEndApprovals,
} from './update-endpoint.ts'

/** What commands that take a URL need too. */
export type EndpointDeps = CommandDeps & { rules: AddressRules }

/** Names one endpoint of one organization. */
export interface EndpointPath extends EndpointName {
  organizationId: string
}

export interface CreatedEndpoint {
  endpointId: EndpointId
  /** This is the only time that anyone sees it. */
  signingSecret: string
}

/** ApiError: 404 no such organization, 403 not active, 409 too many endpoints, 422 what does not fit. */
export async function createEndpoint(
  { rules, ...deps }: EndpointDeps,
  {
    organizationId,
    environment,
    ...request
  }: EndpointRequest & { organizationId: string; environment: Environment },
): Promise<CreatedEndpoint> {
  const spec = completeEndpointRequest(request, rules)
  const now = deps.clock()
  const endpointId = hexId('we', deps.random)
  const { signingSecret, sealedSecret } = generateSecret(deps, endpointId)
  await deps.decide({
    ...endpointsOf(organizationId),
    load: (tx) => load(tx, { organizationId, environment, endpointId }),
    decide: (state) =>
      decideCreation(state, { organizationId, environment, endpointId, spec, sealedSecret, now }),
  })
  return { endpointId, signingSecret }
}

/**
 * ApiError: 404 no such endpoint, 403 organization not active, 409 too many are active or services need it as it is,
 * 422 what does not fit.
 */
export async function updateEndpoint(
  { decide, clock, rules, ...deps }: Omit<EndpointDeps, 'keyring'>,
  { organizationId, environment, endpointId, ...asked }: EndpointPath & EndpointChanges,
): Promise<void> {
  const changes = completeEndpointChanges(asked, rules)
  const now = clock()
  const changeId = newId('evt', { ...deps, now })
  await decide({
    ...endpointsOf(organizationId),
    ...(mayEndApprovals(changes) && seesServices),
    load: (tx) => load(tx, { organizationId, environment, endpointId }),
    decide: (state) => decideUpdate(state, { changes, changeId, now }),
  })
}

/**
 * Disables an endpoint; again, it does nothing. ApiError: 404 no such endpoint, 403 organization not active, 409
 * services need it.
 */
export async function disableEndpoint(
  { decide, clock, ...deps }: Omit<CommandDeps, 'keyring'>,
  path: EndpointPath,
): Promise<void> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  await decide({
    ...endpointsOf(path.organizationId),
    ...seesServices,
    load: (tx) => load(tx, path),
    decide: (state) => decideDisabling(state, { eventId, now }),
  })
}

/** The new signing secret. ApiError: 404 no such endpoint, 403 organization not active, 409 three secrets sign. */
export async function rotateSecret(
  { decide, clock, ...deps }: CommandDeps,
  path: EndpointPath,
): Promise<{ signingSecret: string }> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  const { signingSecret, sealedSecret } = generateSecret(deps, path.endpointId)
  await decide({
    ...endpointsOf(path.organizationId),
    load: async (tx) => {
      const state = await load(tx, path)
      const { endpoint } = state
      return { ...state, has: endpoint !== undefined && hasSecret(endpoint, { ...deps, signingSecret }) }
    },
    decide: (state) => decideRotation(state, { sealedSecret, eventId, now }),
  })
  return { signingSecret }
}

/** The services are all there are only where the decision has `seesServices`. */
async function load(tx: Tx, path: EndpointPath): Promise<EndpointsState> {
  return {
    organization: await findOrganization(tx, path.organizationId),
    endpoint: await findEndpoint(tx, path),
    active: await countActiveEndpoints(tx, path.organizationId),
    services: await servicesToldAt(tx, path.endpointId),
  }
}
