import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { KeyAuth } from '../../../infra/access/auth.ts'
import { checkEach } from '../../../infra/errors/check-all.ts'
import { invalidField } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { NetworkSource } from '../../../infra/ip/network.ts'
import { agentJson } from '../../../projections/sessions/decision-json.ts'
import type { Directories } from '../identity/directories.ts'
import type { FindTrusted } from '../identity/trusted-directories.ts'
import { decideRequest, type EdgeRequest, type RequestDecision } from './decide.ts'
import { isListedHost, listedHosts } from './hosts.ts'
import type { CountRequest } from './metrics.ts'
import {
  maxScoredRequests,
  scoreBody,
  scoreBodyBytes,
  scoredRequest,
  scoringCostOf,
} from './schemas.ts'

export interface RequestOptions {
  auth: Pick<KeyAuth, 'requireSecretWithBodyCost' | 'secret'>
  network: NetworkSource
  directories: Pick<Directories, 'find'>
  findTrusted: FindTrusted
  onScored: CountRequest
  /** URLs whose hosts are allowed for all organizations, in addition to the origins of their keys. */
  firstPartyUrls: readonly string[]
  maxLifetimeMs: number
  clock: Clock
}

const scope = 'requests:score'
const parameterSet = 'request_score'
// Maximum time between yields to the event loop, so that large calls don't delay others. Most calls finish sooner.
const turnMs = 5

/** Defines `POST /v1/requests/score`, which decides from memory, without a query or lookup. */
export function requestRoutes(app: FastifyInstance, options: RequestOptions): void {
  const { auth, network, directories, onScored, firstPartyUrls, maxLifetimeMs, clock } = options
  const { onRequest, preParsing } = auth.requireSecretWithBodyCost(scope, scoringCostOf, 'requests')
  endpoint(app, {
    route: 'POST /v1/requests/score',
    auth: onRequest,
    settings: { preParsing, bodyLimit: scoreBodyBytes },
    isHighVolume: true,
    operationId: 'scoreRequests',
    tag: 'Agents',
    summary: 'Score requests without JavaScript',
    description: `Requires the \`${scope}\` secret-key scope. Decides whether requests that reached your edge were made by a program. Takes up to ${maxScoredRequests} requests and returns the results in the same order. Each request costs one unit of a rate limit that only this endpoint uses. No request data is stored.`,
    body: scoreBody,
    parameterSet,
    responses: { 200: single(z.array(scoredRequest)) },
    async run(request) {
      const { requests } = request.body
      const { organizationId, origins } = auth.secret(request)
      checkHosts(requests, listedHosts({ origins, firstPartyUrls }))
      const findDirectory = (url: string) => directories.find(url)
      const findTrusted = (domain: string) => options.findTrusted(organizationId, domain)
      const knowledge = { network, findDirectory, findTrusted, maxLifetimeMs, now: clock() }
      const data: z.output<typeof scoredRequest>[] = []
      let turnEndsAt = performance.now() + turnMs
      for (const edgeRequest of requests) {
        if (performance.now() > turnEndsAt) {
          await yieldToEventLoop()
          turnEndsAt = performance.now() + turnMs
        }
        const decision = decideRequest(edgeRequest, knowledge)
        onScored(decision)
        data.push(decisionJson(decision))
      }
      return { data }
    },
  })
}

function checkHosts(requests: EdgeRequest[], listed: string[]): void {
  checkEach(requests, (request, i) => {
    if (isListedHost(request, listed)) return
    const expected = 'a host of an allowed origin of a publishable key'
    const name = `requests.${i}.authority`
    throw invalidField({ name, issue: 'not_allowed', expected }, { parameter_set: parameterSet })
  })
}

function decisionJson({ agent, ...decision }: RequestDecision): z.output<typeof scoredRequest> {
  return { ...decision, agent: agentJson(agent) }
}
