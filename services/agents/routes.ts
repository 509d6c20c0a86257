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
import { type AddressFacts, decideRotation, factsOf, hasAllAddresses } from './decide.ts'
import { costOf, rotationBody, rotationDecision } from './schemas.ts'

export interface AgentOptions {
  auth: Pick<Auth, 'requireSecretCosting' | 'caller'>
  network: NetworkSource
  clock: Clock
  logger: Logger
}

const path = '/v1/agents/ip-rotation'

// An organization without the capability gets 404.
const capability = 'ip_rotation'

// An operator has to replace a database of addresses, which takes minutes.
const retryAfterSeconds = 60

export function agentRoutes(
  app: FastifyInstance,
  { auth, network, clock, logger }: AgentOptions,
): void {
  const { missing } = network
  if (missing.length > 0) logger.warn(`POST ${path} answers 503: ${lacking(missing)}`)
  const { onRequest, preParsing } = auth.requireSecretCosting('agents:ip_rotation', costOf)
  const enabled: preParsingHookHandler = (request, _reply, _payload, done) => {
    const has = auth.caller(request).capabilities.includes(capability)
    done(has ? null : new ApiError('request.not_found'))
  }
  endpoint(app, {
    route: `POST ${path}`,
    auth: onRequest,
    settings: { preParsing: [preParsing, enabled] },
    operationId: 'checkAgentIpRotation',
    tag: 'Agents',
    summary: 'Decide for each of up to ten proxy addresses whether to keep or to rotate it',
    description: `Requires the \`agents:ip_rotation\` secret-key scope and the capability \`${capability}\`, which an organization does not have unless it was enabled for it. Costs one unit for each item. Operator catalogue: version ${operatorCatalogue.version}.`,
    body: rotationBody,
    parameterSet: 'agent_ip_rotation',
    answers: { 200: single(z.array(rotationDecision)) },
    errors: [404],
    run({ body }) {
      if (missing.length > 0) throw notConfigured(missing)
      const at = clock()
      const listed = network.listedOperators()
      const data = body.items.map(({ ip, proxy_provider, desired_country_code }, i) => {
        const operator = findOperator(proxy_provider)
        if (!operator)
          throw new Error(`the body was accepted with the unknown operator of item ${i}`)
        const facts = knownFacts(network, { ip, at, name: `items.${i}.ip` })
        const named = { ip, operator, desiredCountryCode: desired_country_code }
        return decideRotation(
          { ...named, hasAllAddresses: hasAllAddresses(operator, listed) },
          facts,
        )
      })
      return { data }
    },
  })
}

const lacking = (missing: string[]) => `IP rotation needs an IP database for ${missing.join(', ')}`

// Without one of the databases the answer would be `keep` for an address that only this one tells about.
function notConfigured(missing: string[]): ApiError {
  return new ApiError('service.unavailable', {
    // The reason is only logged, because the caller can change nothing.
    cause: new Error(lacking(missing)),
    message: 'This server has no IP data to decide with; its operator has to provide it.',
    retryable: false,
    details: { next_action: 'contact_support' },
  })
}

// `name` = the request's field with the address. Throws 503 for the whole batch when too little is known.
function knownFacts(
  network: NetworkSource,
  { ip, at, name }: { ip: string; at: number; name: string },
): AddressFacts {
  const known = network.lookup(ip, at)
  const facts = known.status === 'ready' ? factsOf(known, network.botOperatorAt(ip)) : undefined
  if (facts) return facts
  const message =
    known.status === 'error'
      ? 'The IP data is not available.'
      : `The IP data is incomplete for ${name}.`
  throw new ApiError('service.unavailable', {
    message,
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}
