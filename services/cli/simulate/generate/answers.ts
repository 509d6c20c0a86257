import { hash } from 'node:crypto'
import { answerMac } from '../../../../infra/wire/collect/client-crypto.ts'
import type { OpenResponse } from '../../../../infra/wire/collect/protocol.ts'
import { type SimulationKey, simulationProof } from '../../../../infra/wire/collect/simulation.ts'
import type { Snapshot } from '../../../../schemas/observations.ts'

export type ProofAnswers = Pick<
  Snapshot['proofs'],
  'canvas_challenge_hash' | 'engine_answers' | 'answer_mac'
>

/**
 * Returns the answers of a simulated client: a made-up canvas hash and, with the server's key, the proof that it is
 * simulated. Leaves out the answers about the JavaScript engine, because there is no browser.
 */
export function simulatedAnswers(
  opened: Pick<OpenResponse, 'sessionId' | 'challenge' | 'timingNonce'>,
  key: SimulationKey | undefined,
): ProofAnswers {
  const canvas = hash('sha256', `drawn for ${opened.challenge}`)
  const engine = key ? [simulationProof(key, opened)] : []
  const answer_mac = answerMac(opened, { canvas, engine })
  return { canvas_challenge_hash: canvas, engine_answers: engine, answer_mac }
}
