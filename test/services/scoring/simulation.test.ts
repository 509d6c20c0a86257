import { createSecretKey } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { questionsOf } from '../../../infra/challenges/challenges.ts'
import { noNetwork } from '../../../infra/ip/network.ts'
import { answerMac } from '../../../infra/wire/collect/client-crypto.ts'
import { type SimulationKey, simulationProof } from '../../../infra/wire/collect/simulation.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { simulatedAnswers } from '../../../services/cli/simulate/generate/answers.ts'
import { scoredEvent } from '../../../services/scoring/scored-event.ts'
import { evaluate } from '../../../services/scoring/signals/evaluate.ts'
import { hashesOf } from '../../../services/scoring/signals/repeats.ts'
import { sessionScored } from '../../support/session-scored.ts'
import { batch, opened, startedAt, testSession } from './support/events.ts'
import { stateAfter } from './support/sessions.ts'
import { answers, desktopChrome, proofsOf, withParts } from './support/snapshots.ts'
import { naturalInput, taught } from './support/taught.ts'

const serversKey: SimulationKey = Buffer.alloc(32, 7)
const ofDocument = { sessionId: testSession('script').id, challenge: answers.challenge }
const asked = { ...ofDocument, timingNonce: answers.timing_nonce }
const recorded = proofsOf(desktopChrome.snapshot.navigator?.user_agent ?? '')

interface Given {
  proofs: Partial<typeof recorded>
  /** What the server knows. */
  key?: SimulationKey
}

/** What a server that would learn of it decides about a script that plays a Chrome. */
function decide({ proofs, key }: Given): SessionScored {
  const client = withParts(desktopChrome, { proofs: { ...recorded, ...proofs } })
  const session = testSession('script', { client })
  const observations = {
    version: 1,
    elapsed_ms: 500,
    snapshot: client.snapshot,
    behavior: naturalInput,
  }
  const state = stateAfter([...opened(session), batch(session, { observations })])
  const network = noNetwork.lookup(state.ip_address, startedAt)
  const evaluation = evaluate({ state, network, simulationKey: key, learned: taught })
  const trigger = {
    decisionId: 'evt_x',
    reason: 'first' as const,
    final: true,
    onlyOnChange: false,
    at: startedAt,
  }
  const learning = {
    visitor: sessionScored().visitor,
    countingKey: createSecretKey(Buffer.alloc(32)),
  }
  const about = { state, trigger, evaluation, hashes: hashesOf(evaluation.facts), ...learning }
  const { event } = scoredEvent({ ...about, evaluatedAt: startedAt, durationMs: 1 })
  if (event.type !== 'SessionScored') throw new Error(event.type)
  return event.data
}

const sources = ({ evidence }: SessionScored) =>
  evidence?.sources.filter((name) => name.endsWith('_answers'))

describe('a script', () => {
  it('given the key of its server, when it proves itself, then it is human and named as simulated', () => {
    const decision = decide({ proofs: simulatedAnswers(asked, serversKey), key: serversKey })
    expect(decision.verdict).toBe('human')
    expect(sources(decision)).toEqual(['simulated_answers'])
  })

  it('given the key and what was recorded, when it sends both, then nothing of it is recorded or taught', () => {
    const engine = [...recorded.engine_answers, simulationProof(serversKey, ofDocument)]
    const canvas = recorded.canvas_challenge_hash
    const proofs = { engine_answers: engine, answer_mac: answerMac(asked, { canvas, engine }) }
    const decision = decide({ proofs, key: serversKey })
    expect(sources(decision)).toEqual(['simulated_answers'])
    expect(decision.given_answers).toBeNull()
    // As a browser that gives the same answers does.
    expect(decide({ proofs }).given_answers?.is_consistent).toBe(true)
  })

  it.each<[given: string, Given]>([
    ['no key', { proofs: simulatedAnswers(asked, undefined), key: serversKey }],
    ['another key', { proofs: simulatedAnswers(asked, Buffer.alloc(32, 8)), key: serversKey }],
    ['an empty key', { proofs: simulatedAnswers(asked, Buffer.alloc(0)), key: serversKey }],
    ['a server that has no key', { proofs: simulatedAnswers(asked, serversKey) }],
    [
      'the proof of another document',
      {
        proofs: simulatedAnswers({ ...asked, challenge: 'another' }, serversKey),
        key: serversKey,
      },
    ],
    [
      'the proof of another session',
      {
        proofs: simulatedAnswers({ ...asked, sessionId: testSession('another').id }, serversKey),
        key: serversKey,
      },
    ],
    [
      'a proof as the answer to a question',
      {
        proofs: {
          engine_answers: questionsOf(answers.challenge).map(({ id }) => ({
            ...simulationProof(serversKey, ofDocument),
            id,
          })),
        },
        key: serversKey,
      },
    ],
  ])('given %s, when it proves itself, then it is not human', (_, given) => {
    const decision = decide(given)
    expect(decision.verdict).not.toBe('human')
    expect(sources(decision)).not.toContain('simulated_answers')
  })
})
