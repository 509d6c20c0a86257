import { createCodec } from '../../infra/event-store/codec.ts'
import type { SessionScored } from '../../schemas/events.ts'
import { linkedVisitor } from './apply-visitors.ts'
import type { DecisionEvidence } from './tables.ts'

const codec = createCodec()

export function readEvent(value: Buffer): SessionScored {
  const { type, data } = codec.decode(value)
  if (type !== 'SessionScored') throw new Error(`a stored decision is a ${type}`)
  return data
}

export function readEvidence(value: Buffer): DecisionEvidence {
  const { request, score_breakdown, visitor, signals_fired, attribution, hand_off, agent, device } =
    readEvent(value)
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
