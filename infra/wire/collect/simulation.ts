import { createHmac } from 'node:crypto'
import { isSameText } from '../../crypto/same-text.ts'
import type { EngineAnswer } from './protocol.ts'

// A script has no browser engine to answer questions. The repository's scripts authenticate to `tidegate dev` instead,
// with a key that only such a server creates. The proof is sent as one of the answers, so the wire format stays the
// same.

/** Secret shared between `tidegate dev` and the repository's scripts on the same machine. */
export type SimulationKey = Uint8Array

export const simulationKeyBytes = 32

/** A document, identified by values of its open response. */
interface ProvenDocument {
  sessionId: string
  challenge: string
}

// No question has this id.
const proofId = 0

/** Returns the proof for a document. It is valid for no other document, so it cannot be replayed. */
export function simulationProof(
  key: SimulationKey,
  { sessionId, challenge }: ProvenDocument,
): EngineAnswer {
  const mac = createHmac('sha256', key)
    .update(`simulation\n${sessionId}\n${challenge}`)
    .digest('base64url')
  return { id: proofId, answer: mac }
}

/** Returns true if the answers contain a valid proof. */
export function provesSimulation(
  key: SimulationKey,
  document: ProvenDocument,
  answers: readonly EngineAnswer[],
): boolean {
  const expected = simulationProof(key, document).answer
  const proof = answers.find(({ id }) => id === proofId)?.answer
  return proof !== undefined && isSameText(expected, proof)
}
