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
 * What a script answers: a drawing that it made up and, where it has the key, the proof that it belongs to the server.
 * It leaves questions about the engine open, as there is none.
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
