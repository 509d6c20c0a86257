import { createSecretKey } from 'node:crypto'
import { expect, it } from 'vitest'
import { questionsOf } from '../../../infra/challenges/challenges.ts'
import { answerMac } from '../../../infra/wire/collect/client-crypto.ts'
import { type SimulationKey, simulationProof } from '../../../infra/wire/collect/simulation.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { simulatedAnswers } from '../../../services/cli/simulate/generate/answers.ts'
import { visitorLink } from '../../support/session-scored.ts'
import { testSession } from './support/events.ts'
import { naturalInput } from './support/natural-input.ts'
import { evaluateState, scored, stateOf } from './support/sessions.ts'
import { agentOf, answers, desktopChrome, proofsOf, withParts } from './support/snapshots.ts'

const serversKey: SimulationKey = Buffer.alloc(32, 7)
const ofDocument = { sessionId: testSession('script').id, challenge: answers.challenge }
const asked = { ...ofDocument, timingNonce: answers.timing_nonce }
const recorded = proofsOf(agentOf(desktopChrome))

interface Given {
  proofs: Partial<typeof recorded>
  /** The server's key. */
  key?: SimulationKey
}

/** Returns the decision of a learning server about a script that imitates Chrome. */
function decide({ proofs, key }: Given): SessionScored {
  const client = withParts(desktopChrome, { proofs: { ...recorded, ...proofs } })
  const state = stateOf(testSession('script', { client }), naturalInput)
  const countingKey = createSecretKey(Buffer.alloc(32))
  const evaluation = evaluateState(state, { simulationKey: key })
  return scored(state, evaluation, { visitor: visitorLink(), countingKey }).data
}

const sources = ({ evidence }: SessionScored) =>
  evidence?.sources.filter((name) => name.endsWith('_answers'))

it('a script with the key of the server is human and marked as simulated', () => {
  const decision = decide({ proofs: simulatedAnswers(asked, serversKey), key: serversKey })
  expect(decision.verdict).toBe('human')
  expect(sources(decision)).toEqual(['simulated_answers'])
})

it('nothing is learned from a script that sends a proof and recorded answers', () => {
  const engine = [...recorded.engine_answers, simulationProof(serversKey, ofDocument)]
  const canvas = recorded.canvas_challenge_hash
  const proofs = { engine_answers: engine, answer_mac: answerMac(asked, { canvas, engine }) }
  const decision = decide({ proofs, key: serversKey })
  expect(sources(decision)).toEqual(['simulated_answers'])
  expect(decision.given_answers).toBeNull()
  // A browser with the same answers does teach them.
  expect(decide({ proofs }).given_answers?.is_consistent).toBe(true)
})

const proofOf = (more: Partial<typeof asked>) => simulatedAnswers({ ...asked, ...more }, serversKey)
const asAnswers = questionsOf(answers.challenge).map(({ id }) => ({
  ...simulationProof(serversKey, ofDocument),
  id,
}))

it.each<[given: string, proofs: Given['proofs']]>([
  ['no key', simulatedAnswers(asked, undefined)],
  ['another key', simulatedAnswers(asked, Buffer.alloc(32, 8))],
  ['an empty key', simulatedAnswers(asked, Buffer.alloc(0))],
  ['the proof of another document', proofOf({ challenge: 'another' })],
  ['the proof of another session', proofOf({ sessionId: testSession('another').id })],
  ['a proof as the answer to a question', { engine_answers: asAnswers }],
])('a script with %s is not human', (_, proofs) => {
  const decision = decide({ proofs, key: serversKey })
  expect(decision.verdict).not.toBe('human')
  expect(sources(decision)).not.toContain('simulated_answers')
})

it('a script is not human if the server has no key', () => {
  const decision = decide({ proofs: proofOf({}) })
  expect(decision.verdict).not.toBe('human')
  expect(sources(decision)).not.toContain('simulated_answers')
})
