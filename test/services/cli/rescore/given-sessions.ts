import { createHash } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { derivedId } from '../../../../infra/ids.ts'
import type { SimulationKey } from '../../../../infra/wire/collect/simulation.ts'
import { simulatedAnswers } from '../../../../services/cli/simulate/generate/answers.ts'
import { headersOf } from '../../../../services/cli/simulate/generate/headers.ts'
import {
  type PlannedObservations,
  planSession,
  type SessionPlan,
} from '../../../../services/cli/simulate/generate/plan.ts'
import type { SessionEvent } from '../../../../services/scoring/session/state.ts'

export const organizationId = 'org_0123456789abcdefghjkmnpqrs'
export const startedAt = Date.UTC(2026, 10, 23, 12)
export const key: SimulationKey = Buffer.alloc(32, 1)

/** A session as `tidegate simulate` makes it. Each fifth has no proofs, so that nothing says which engine it is. */
export interface GivenSession {
  id: string
  plan: SessionPlan
  /** The last one asks for the result. */
  events: SessionEvent[]
}

export function givenSessions(count: number, seed: string): GivenSession[] {
  return Array.from({ length: count }, (_, index) => {
    const plan = planSession(seed, index)
    const id = derivedId('sid', seed, String(index))
    return { id, plan, events: eventsOf(id, plan) }
  })
}

function eventsOf(session_id: string, plan: SessionPlan): SessionEvent[] {
  const at = startedAt + plan.index * 1000
  const scope = { session_id, organization_id: organizationId, environment: 'live' } as const
  const document = { document_id_hash: `document-${session_id}`, ip_address: addressOf(plan) }
  const headers = headersOf(plan)
  const user_agent = headers['User-Agent'] ?? ''
  const body = (observations: PlannedObservations, seq: number) => {
    const payload = deflateRawSync(JSON.stringify(answered(observations, { session_id, plan })))
    const body_hash = createHash('sha256').update(payload).digest('hex')
    const event_id = derivedId('evt', 'body', session_id, String(seq))
    return {
      ...scope,
      ...document,
      event_id,
      seq,
      received_at: at + seq * 100,
      body_hash,
      user_agent,
      payload,
    }
  }
  const last = body(plan.closing, plan.batches.length + 1)
  return [
    { type: 'SessionOpened', data: { ...scope, ...openedBy(plan), opened_at: at } },
    { type: 'DocumentOpened', data: { ...scope, ...document, ...documentOf(plan, headers), opened_at: at } },
    ...plan.batches.map((one, i) => ({ type: 'BatchReceived' as const, data: body(one, i + 1) })),
    { type: 'ResultRequested', data: { ...last, decision_id: derivedId('evt', last.event_id) } },
  ]
}

const addressOf = ({ visitor }: SessionPlan) => `203.0.113.${visitor % 200}`

const openedBy = ({ visitor, index, sdk }: SessionPlan) => ({
  key_id: 'key_0123456789abcdefghjkmnpqrs',
  platform: sdk.platform,
  sdk_name: sdk.name,
  sdk_version: sdk.version,
  continuity_ids: visitor === index ? [] : [`continuity-${visitor}`],
  continuity_id: `continuity-${visitor}`,
})

function documentOf({ page }: SessionPlan, headers: Record<string, string>) {
  const hints = Object.entries(headers).filter(([name]) => name.startsWith('Sec-CH-UA'))
  return {
    ...{
      ...page,
      resumed: false,
      user_agent: headers['User-Agent'] ?? '',
      signature_agent: null,
      ja4: null,
      http2_fingerprint: null,
      signature: null,
      client_public_key: null,
    },
    accept_language: headers['Accept-Language'] ?? null,
    client_hints: Object.fromEntries(hints.map(([name, value]) => [name.toLowerCase(), value])),
    header_order: Object.keys(headers),
    ...{ challenge: 'challenge', timing_nonce: 'timing', canvas_seed: 'seed' },
  }
}

function answered(
  observations: PlannedObservations,
  { session_id, plan }: { session_id: string; plan: SessionPlan },
) {
  const { snapshot } = observations
  if (!snapshot) return observations
  const asked = { sessionId: session_id, challenge: 'challenge', timingNonce: 'timing' }
  const proofs = simulatedAnswers(asked, plan.index % 5 === 0 ? undefined : key)
  return { ...observations, snapshot: { ...snapshot, proofs } }
}
