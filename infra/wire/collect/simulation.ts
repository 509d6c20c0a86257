import { createHmac } from 'node:crypto'
import { constantTimeEqual } from '../../crypto/constant-time.ts'
import type { EngineAnswer } from './protocol.ts'

// A script has no browser engine to answer questions. Instead, the repository's scripts authenticate to `tidegate dev`
// with a key that only such a server creates. The proof is sent as one of the answers, so the wire format is the same.

/** Secret shared between `tidegate dev` and the repository's scripts on the same machine. */
export type SimulationKey = Uint8Array

export const simulationKeyBytes = 32

/** A document, identified by values of its open response. */
interface SimulatedDocument {
  sessionId: string
  challenge: string
}

// No question has this id.
const proofId = 0

/** Returns the proof for a document. It is valid for no other document, so it cannot be replayed. */
export function simulationProof(
  key: SimulationKey,
  { sessionId, challenge }: SimulatedDocument,
): EngineAnswer {
  const mac = createHmac('sha256', key)
    .update(`simulation\n${sessionId}\n${challenge}`)
    .digest('base64url')
  return { id: proofId, answer: mac }
}

/** Returns true if the answers contain a valid proof. */
export function hasSimulationProof(
  key: SimulationKey,
  document: SimulatedDocument,
  answers: readonly EngineAnswer[],
): boolean {
  const expected = simulationProof(key, document).answer
  const proof = answers.find(({ id }) => id === proofId)?.answer
  return proof !== undefined && constantTimeEqual(expected, proof)
}
