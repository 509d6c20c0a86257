import { createHmac } from 'node:crypto'
import { isSameText } from '../../crypto/same-text.ts'
import type { EngineAnswer } from './protocol.ts'

// A script has no engine that could answer. Those of this repository prove themselves to `tidegate dev` in its place, by
// a key that only such a server makes and knows. Their proof stands among the answers, so that clients need no other
// wire format.

/** Bytes that `tidegate dev` shares with the scripts of this repository on the same machine. */
export type SimulationKey = Uint8Array

export const simulationKeyBytes = 32

/** A document, by values that only its own opening was answered with. */
interface ProvenDocument {
  sessionId: string
  challenge: string
}

// No question has this id.
const proofId = 0

/** Valid for this document and no other, so that a recorded proof proves nothing elsewhere. */
export function simulationProof(
  key: SimulationKey,
  { sessionId, challenge }: ProvenDocument,
): EngineAnswer {
  const mac = createHmac('sha256', key)
    .update(`simulation\n${sessionId}\n${challenge}`)
    .digest('base64url')
  return { id: proofId, answer: mac }
}

export function provesSimulation(
  key: SimulationKey,
  document: ProvenDocument,
  answers: readonly EngineAnswer[],
): boolean {
  const own = simulationProof(key, document).answer
  const said = answers.find(({ id }) => id === proofId)?.answer
  return said !== undefined && isSameText(own, said)
}
