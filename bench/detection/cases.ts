import type { Desktop } from './desktop.ts'
import type { Peer, Phase, Visit } from './site.ts'
import type { Judgement, Tidegate } from './tidegate.ts'

/**
 * `loading` and `acting` are the two moments of an automated browser that hides nothing but what its tool hides.
 * `informed` are forgeries by somebody who has read this repository, and `informed-fresh` the same on a server that
 * has learned nothing.
 */
export type Kind = 'loading' | 'acting' | 'evasion' | 'forgery' | 'informed' | 'informed-fresh' | 'person'

/** What a case is given: a fresh folder, a page of its own, a seed, and an end. */
export interface Stage {
  /** Of the case. */
  name: string
  visit: Visit
  /** For its profile; removed afterwards. */
  folder: string
  desktop: Desktop
  tidegate: Tidegate
  seed: string
  signal: AbortSignal
  /** The session id of the first person that acted, once there was one. */
  recordedSession: string | undefined
}

/** A moment at which a session was judged. */
export interface Outcome extends Judgement {
  phase: Phase
  sessionId: string
  botd: Peer | null
  fpscanner: Peer | null
}

export interface Case {
  name: string
  kind: 'automation' | 'evasion' | 'forgery' | 'informed' | 'informed-fresh' | 'person'
  family: string
  framework: string
  version: string
  /** It takes so little of the machine that several may run beside each other, each with a desktop of its own. */
  isSlow?: boolean
  /** Says what a later moment was that never came, by throwing after the ones that did. */
  run(stage: Stage, onOutcome: (outcome: Outcome) => void): Promise<void>
}

export function kindOf(kind: Case['kind'], phase: Phase): Kind {
  if (kind !== 'automation') return kind
  return phase === 'act' ? 'acting' : 'loading'
}
