import { createCodec } from '../../infra/event-store/codec.ts'
import type { SessionScored } from '../../schemas/events.ts'
import { linkedVisitor } from './apply-visitors.ts'
import type { DecisionEvidence, FullDecisionRow } from './tables.ts'

const codec = createCodec()

export function readEvent(value: Buffer): SessionScored {
  const { type, data } = codec.decode(value)
  if (type !== 'SessionScored') throw new Error(`a stored decision is a ${type}`)
  return data
}

export const readEvidence = (value: Buffer): DecisionEvidence => evidenceOf(readEvent(value))

/** Returns the same row as `findDecisions`. */
export const decisionRowOf = (decision: SessionScored): FullDecisionRow => ({
  ...decision,
  ...evidenceOf(decision),
})

function evidenceOf(decision: SessionScored): DecisionEvidence {
  const { request, score_breakdown, visitor, signals_fired, attribution, hand_off, agent, device } =
    decision
  const platform = device.operating_system.name
  const link = linkedVisitor(visitor)
  return {
    request,
    score_breakdown,
    visitor: link,
    signals_fired,
    attribution,
    hand_off,
    agent,
    platform,
  }
}
