import type { FastifyInstance, preParsingHookHandler } from 'fastify'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { single } from '../../infra/http/schemas.ts'
import type { Clock } from '../../infra/ids.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import { findOperator, operatorCatalogue } from '../../infra/ip/operators.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { type AddressFacts, addressFactsOf, decideRotation, knowsAllAddressesOf } from './decide.ts'
import { costOf, maxItems, rotationBody, rotationDecision } from './schemas.ts'

export interface AgentOptions {
  auth: Pick<Auth, 'requireSecretWithBodyCost' | 'caller'>
  network: NetworkSource
  clock: Clock
  logger: Logger
}

const path = '/v1/agents/ip-rotation'

// Organizations without the capability get 404.
const capability = 'ip_rotation'

// Allows time for the server's administrator to replace an IP database.
const retryAfterSeconds = 60

export function agentRoutes(
  app: FastifyInstance,
  { auth, network, clock, logger }: AgentOptions,
): void {
  const { missing } = network
  if (missing.length > 0) logger.warn(`POST ${path} returns 503: ${missingText(missing)}`)
  const { onRequest, preParsing } = auth.requireSecretWithBodyCost('agents:ip_rotation', costOf)
  const requireCapability: preParsingHookHandler = (request, _reply, _payload, done) => {
    const isEnabled = auth.caller(request).capabilities.includes(capability)
    done(isEnabled ? null : new ApiError('request.not_found'))
  }
  endpoint(app, {
    route: `POST ${path}`,
    auth: onRequest,
    settings: { preParsing: [preParsing, requireCapability] },
    operationId: 'checkAgentIpRotation',
    tag: 'Agents',
    summary: 'Check whether to keep or rotate proxy addresses',
    description: `Requires the \`agents:ip_rotation\` secret-key scope and the capability \`${capability}\`, which the operator of the server enables per organization; without it, the response is 404. Takes up to ${maxItems} addresses and costs one unit per address. Operator catalogue: version ${operatorCatalogue.version}.`,
    body: rotationBody,
    parameterSet: 'agent_ip_rotation',
    responses: { 200: single(z.array(rotationDecision)) },
    errors: [404],
    run({ body }) {
      if (missing.length > 0) throw notConfigured(missing)
      const at = clock()
      const listedOperators = network.listedOperators()
      const data = body.items.map(({ ip, proxy_provider, desired_country_code }, i) => {
        const operator = findOperator(proxy_provider)
        if (!operator) throw new Error(`item ${i} passed validation but its operator is unknown`)
        const facts = requireFacts(network, { ip, at, name: `items.${i}.ip` })
        const item = { ip, operator, desiredCountryCode: desired_country_code }
        const areAllAddressesKnown = knowsAllAddressesOf(operator, listedOperators)
        return decideRotation({ ...item, areAllAddressesKnown }, facts)
      })
      return { data }
    },
  })
}

const missingText = (missing: string[]) =>
  `IP rotation needs an IP database for ${missing.join(', ')}`

// With a database missing, an address listed only there would wrongly get `keep`.
function notConfigured(missing: string[]): ApiError {
  return new ApiError('service.unavailable', {
    // The cause is only logged, because the caller cannot fix it.
    cause: new Error(missingText(missing)),
    message: 'This server has no IP data to decide with; its operator has to provide it.',
    retryable: false,
    details: { next_action: 'contact_support' },
  })
}

// Throws 503 for the whole batch if too little is known about the address. `name` is its field in the request.
function requireFacts(
  network: NetworkSource,
  { ip, at, name }: { ip: string; at: number; name: string },
): AddressFacts {
  const result = network.lookup(ip, at)
  const facts =
    result.status === 'ready' ? addressFactsOf(result, network.botOperatorAt(ip)) : undefined
  if (facts) return facts
  const message =
    result.status === 'error'
      ? 'The IP data is not available.'
      : `The IP data is incomplete for ${name}.`
  throw new ApiError('service.unavailable', {
    message,
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}
