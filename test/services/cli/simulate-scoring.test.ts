import { deflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import type { SimulationKey } from '../../../infra/wire/collect/simulation.ts'
import { simulatedAnswers } from '../../../services/cli/simulate/generate/answers.ts'
import { attackNames } from '../../../services/cli/simulate/generate/bots.ts'
import { headersOf } from '../../../services/cli/simulate/generate/headers.ts'
import {
  attackMix,
  type PlannedObservations,
  planSession,
  type SessionPlan,
} from '../../../services/cli/simulate/generate/plan.ts'
import { evolve, type SessionEvent } from '../../../services/scoring/session/state.ts'
import { evaluate } from '../../../services/scoring/signals/evaluate.ts'

const scope = { session_id: 'sid_1', organization_id: 'org_1', environment: 'test' } as const
const document = { document_id_hash: 'd1', ip_address: '203.0.113.1' }

const serversKey: SimulationKey = Buffer.alloc(32, 1)

interface Keys {
  /** Simulation key of the simulated clients. */
  key: SimulationKey | undefined
}

function eventsOf(plan: SessionPlan, { key }: Keys): SessionEvent[] {
  const headers = headersOf(plan)
  const user_agent = headers['User-Agent'] ?? ''
  const hints = Object.entries(headers).filter(([name]) => name.startsWith('Sec-CH-UA'))
  const opened: SessionEvent = {
    type: 'DocumentOpened',
    data: {
      ...scope,
      ...document,
      ...plan.page,
      opened_at: 1,
      resumed: false,
      user_agent,
      accept_language: headers['Accept-Language'] ?? null,
      client_hints: Object.fromEntries(hints.map(([name, value]) => [name.toLowerCase(), value])),
      header_order: Object.keys(headers),
      signature_agent: null,
      ja4: null,
      http2_fingerprint: null,
      signature: null,
      client_public_key: null,
      challenge: 'challenge',
      timing_nonce: 'timing',
      canvas_seed: 'seed',
    },
  }
  const batches = [...plan.batches, plan.closing].map((observations, i): SessionEvent => {
    const body = {
      event_id: `e${i}`,
      seq: i + 1,
      received_at: 2,
      body_hash: String(i).padStart(64, '0'),
    }
    const payload = deflateRawSync(JSON.stringify(withProofs(observations, key)))
    return { type: 'BatchReceived', data: { ...scope, ...document, ...body, user_agent, payload } }
  })
  return [opened, ...batches]
}

/** Adds proofs, as `simulate` does before it sends the observations. */
function withProofs(observations: PlannedObservations, key: SimulationKey | undefined) {
  const { snapshot } = observations
  if (!snapshot) return observations
  const opened = { sessionId: scope.session_id, challenge: 'challenge', timingNonce: 'timing' }
  const proofs = simulatedAnswers(opened, key)
  return { ...observations, snapshot: { ...snapshot, proofs } }
}

function evaluatePlan(plan: SessionPlan, keys: Keys = { key: serversKey }) {
  const state = eventsOf(plan, keys).reduce<ReturnType<typeof evolve> | undefined>(
    evolve,
    undefined,
  )
  if (!state) throw new Error('no events')
  return evaluate({
    state: { ...state, platform: plan.client },
    network: noNetwork.lookup(state.ip_address, 2),
    simulationKey: serversKey,
  })
}

const plans = Array.from({ length: 400 }, (_, index) => planSession('scoring', index))

test('no risk signal fires for human-like sessions', () => {
  for (const plan of plans.filter(({ actor }) => actor === 'human')) {
    const { fired, score } = evaluatePlan(plan)
    const risks = fired.filter(({ role }) => role === 'risk').map(({ slug }) => slug)
    const isPage = plan.client === 'web'
    expect({ family: plan.family, risks, verdict: score.verdict }).toEqual({
      family: plan.family,
      risks: isPage ? [] : ['app_unattested'],
      verdict: isPage ? 'human' : 'inconclusive',
    })
  }
})

test('automated browsers are scored as bots, and other bot-like sessions never as human', () => {
  const bots = plans.filter(({ actor }) => actor !== 'human')
  expect(bots.length).toBeGreaterThan(80)
  for (const plan of bots) {
    const { verdict } = evaluatePlan(plan).score
    if (plan.actor === 'scripted' || plan.actor === 'emulator') expect(verdict).not.toBe('human')
    else expect({ actor: plan.actor, verdict }).toEqual({ actor: plan.actor, verdict: 'bot' })
  }
})

test.each(attackNames)('the attack %s is scored as bots', (attack) => {
  for (let index = 0; index < 50; index++)
    expect(evaluatePlan(planSession('attack', index, attackMix(attack))).score.verdict).toBe('bot')
})

test.each([
  ['no key', undefined],
  ["another server's key", Buffer.alloc(32, 2)],
])('with %s, no session is human', (_, key) => {
  const verdicts = new Set(plans.map((plan) => evaluatePlan(plan, { key }).score.verdict))
  expect([...verdicts].sort()).toEqual(['bot', 'inconclusive'])
})
