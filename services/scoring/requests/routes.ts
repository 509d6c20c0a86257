import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { KeyAuth } from '../../../infra/access/auth.ts'
import { checkEach } from '../../../infra/errors/check-all.ts'
import { invalidField } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { NetworkSource } from '../../../infra/ip/network.ts'
import { agentJson } from '../../../projections/sessions/decision-shape.ts'
import type { Directories } from '../identity/directories.ts'
import type { FindTrusted } from '../identity/trusted.ts'
import { decideRequest, type EdgeRequest, type RequestDecision } from './decide.ts'
import { isListedHost, listedHosts } from './hosts.ts'
import type { CountRequest } from './metrics.ts'
import { mostScored, scoreBody, scoreBodyBytes, scoredRequest, scoringCostOf } from './schemas.ts'

export interface RequestOptions {
  auth: Pick<KeyAuth, 'requireSecretCosting' | 'secret'>
  network: NetworkSource
  directories: Pick<Directories, 'find'>
  findTrusted: FindTrusted
  onScored: CountRequest
  /** Hosts beside those of the organization's keys. */
  firstPartyUrls: readonly string[]
  maxLifetimeMs: number
  clock: Clock
}

const scope = 'requests:score'
const parameterSet = 'request_score'
// Other requests wait no longer for a call with costly items. Most calls are done within one turn of the event loop.
const turnMs = 5

/** `POST /v1/requests/score`. Everything is in memory. */
export function requestRoutes(app: FastifyInstance, options: RequestOptions): void {
  const {
    auth,
    network,
    directories,
    findTrusted,
    onScored,
    firstPartyUrls,
    maxLifetimeMs,
    clock,
  } = options
  const { onRequest, preParsing } = auth.requireSecretCosting(scope, scoringCostOf, 'requests')
  endpoint(app, {
    route: 'POST /v1/requests/score',
    auth: onRequest,
    settings: { preParsing, bodyLimit: scoreBodyBytes },
    frequent: true,
    operationId: 'scoreRequests',
    tag: 'Agents',
    summary: 'Say of requests that run no JavaScript whether a program made them',
    description: `Requires the \`${scope}\` secret-key scope. Up to ${mostScored} requests as an edge saw them, answered in their order. Each costs one unit of a bucket that no other endpoint takes from. Nothing of a request is stored.`,
    body: scoreBody,
    parameterSet,
    answers: { 200: single(z.array(scoredRequest)) },
    async run(request) {
      const { requests } = request.body
      const { organizationId, origins } = auth.secret(request)
      checkHosts(requests, listedHosts({ origins, firstPartyUrls }))
      const directory = (url: string) => directories.find(url)
      const trusted = (domain: string) => findTrusted(organizationId, domain)
      const known = { network, directory, trusted, maxLifetimeMs, now: clock() }
      const data: z.output<typeof scoredRequest>[] = []
      let turnEndsAt = performance.now() + turnMs
      for (const one of requests) {
        if (performance.now() > turnEndsAt) {
          await nextTurn()
          turnEndsAt = performance.now() + turnMs
        }
        const decision = decideRequest(one, known)
        onScored(decision)
        data.push(decisionJson(decision))
      }
      return { data }
    },
  })
}

function checkHosts(requests: EdgeRequest[], listed: string[]): void {
  checkEach(requests, (one, i) => {
    if (isListedHost(one, listed)) return
    const expected = 'a host of an allowed origin of a publishable key'
    const name = `requests.${i}.authority`
    throw invalidField({ name, issue: 'not_allowed', expected }, { parameter_set: parameterSet })
  })
}

function decisionJson({ agent, ...decision }: RequestDecision): z.output<typeof scoredRequest> {
  return { ...decision, agent: agentJson(agent) }
}
