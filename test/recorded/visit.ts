import { readFileSync } from 'node:fs'
import path from 'node:path'
import { readSimulationKey } from '../../infra/local/development.ts'
import {
  type CollectClientOptions,
  createCollectClient,
  type HandoffResult,
  type OpenedSession,
} from '../../infra/wire/collect/client.ts'
import type { SentObservations } from '../../schemas/observations.ts'
import { simulatedAnswers } from '../../services/cli/simulate/generate/answers.ts'
import { eventually } from '../support/eventually.ts'
import { bindingOf } from '../support/gate-proof.ts'
import { queryAt } from '../support/server-databases.ts'
import { type Headers, headerOf, type Request } from './http.ts'
import type { World } from './world.ts'

/** A visitor's observations, as the simulation once generated them. */
interface Person {
  sdk: CollectClientOptions['sdk']
  page: { url: string; referrer: string | null }
  headers: Headers
  batches: SentObservations[]
  closing: SentObservations
}

type Name = 'robin' | 'sam' | 'phone' | 'tablet' | 'bot' | 'script'

const file = path.resolve(import.meta.dirname, '../fixtures/recorded/people.json')
const people: Record<Name, Person> = JSON.parse(readFileSync(file, 'utf8'))

export interface VisitOptions {
  /** Name of the requests. */
  name: string
  person: Name
  publishableKey: string
  address: string
  pageUrl?: string
  /** Resume token of an earlier document of the session. */
  resumeToken?: string
  /** Continuity token of an earlier session. */
  continuity?: string
  /** Batches to send; default: all there are. */
  batches?: number
}

export interface Visit {
  opened: OpenedSession
  /** `fingerprint.state.id`. */
  continuity: string
  /** The last request of each kind. */
  sent: Record<'sessions' | 'batches' | 'results', Request>
  /** Asks for the sealed token, which names what it is bound to. */
  finish(boundTo?: string): Promise<HandoffResult>
}

/** The headers that a person's browser or app sends by itself. */
export function headersOf(
  person: Name,
  { address, pageUrl }: Pick<VisitOptions, 'address' | 'pageUrl'>,
): Headers {
  const page = pageUrl !== undefined && { Origin: new URL(pageUrl).origin, Referer: pageUrl }
  return { ...people[person].headers, ...page, 'x-forwarded-for': address }
}

let visits = 0

// Steps of a pace, each farther from the next than noise is.
const step = 1.08
const steps = 9

/** No two visits have nearly the same input: of three numbers of a channel, two differ at least. */
function ofThisVisit(observations: SentObservations): SentObservations {
  const { behavior } = observations
  if (!behavior) return observations
  const [one, two] = [visits % steps, Math.floor(visits / steps) % steps]
  const paced = (value: number | null, by: number) => value && value * step ** (by % steps)
  const of = <T extends { interval_mean: number | null; interval_std: number | null }>(
    channel: T,
  ): T => ({
    ...channel,
    interval_mean: paced(channel.interval_mean, one),
    interval_std: paced(channel.interval_std, two),
  })
  const { mouse, keyboard, touch } = behavior
  const moved = {
    mouse: { ...of(mouse), speed_std: paced(mouse.speed_std, one + two) },
    keyboard: { ...of(keyboard), hold_mean: paced(keyboard.hold_mean, one + two) },
    touch: { ...of(touch), radius_std: paced(touch.radius_std, one + two) },
  }
  return { ...observations, behavior: { ...behavior, ...moved } }
}

/** Opens a session and sends what was observed; every request is recorded. */
export async function visit(world: World, options: VisitOptions): Promise<Visit> {
  const { name, person, publishableKey, resumeToken, continuity } = options
  const { sdk, page, ...sentBy } = people[person]
  visits += 1
  const batches = sentBy.batches.map(ofThisVisit)
  const closing = ofThisVisit(sentBy.closing)
  const missing: Request = { method: 'GET', path: '/nothing-was-sent' }
  const sent: Visit['sent'] = { sessions: missing, batches: missing, results: missing }
  const counts: Record<string, number> = {}
  const client = createCollectClient({
    endpoint: '',
    publishableKey,
    sdk,
    page: { ...page, url: options.pageUrl ?? page.url },
    ...(resumeToken !== undefined && { resumeToken }),
    ...(continuity !== undefined && { continuity }),
    retry: { attempts: 1 },
    async fetch(url, { method, headers, body }) {
      const kind = kindOf(url)
      counts[kind] = (counts[kind] ?? 0) + 1
      const request = {
        method,
        path: url,
        headers: { ...headersOf(person, options), ...headers },
        body,
      }
      sent[kind] = request
      const answer = await world.send({ name: `${name}: ${kind} ${counts[kind]}`, ...request })
      return {
        status: answer.status,
        headers: { get: (header) => headerOf(answer, header.toLowerCase()) ?? null },
        json: async () => JSON.parse(answer.body.toString('utf8')),
      }
    },
  })
  const simulationKey = readSimulationKey(world.dataDir)
  const opened = await client.open()
  let handedOut = ''
  for (const batch of batches.slice(0, options.batches)) {
    const { snapshot } = batch
    const proofs = simulatedAnswers(opened, simulationKey)
    const { fingerprint } = await client.sendBatch(
      snapshot ? { ...batch, snapshot: { ...snapshot, proofs } } : batch,
    )
    handedOut = fingerprint?.state.id ?? handedOut
  }
  // Otherwise it hangs on the time until the hand-off whether that is the first decision.
  if (sent.batches !== missing) await eventually(() => expectDecision(world, opened.sessionId))
  return {
    opened,
    continuity: handedOut,
    sent,
    finish: (boundTo) =>
      client.requestResult({
        ...closing,
        ...(boundTo === undefined ? {} : { binding: bindingOf(boundTo) }),
      }),
  }
}

async function expectDecision({ databaseUrl }: World, sessionId: string): Promise<void> {
  const text = `select session_id from read.sessions where session_id = '${sessionId}'`
  if ((await queryAt(databaseUrl, [text])).length === 0) throw new Error('it is not decided yet')
}

function kindOf(url: string): keyof Visit['sent'] {
  const last = url.slice(url.lastIndexOf('/') + 1)
  return last === 'batches' || last === 'results' ? last : 'sessions'
}

/** The token with some of what is sealed in it changed. */
export const changedToken = (token: string): string =>
  `${token.slice(0, 80)}AAAAAAAA${token.slice(88)}`
