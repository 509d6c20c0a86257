import type { SentObservations } from '../../schemas/observations.ts'
import type { Attack } from './attacks.ts'
import type { Desktop } from './desktop.ts'
import type { AnswerTable } from './forging.ts'
import type { OracleBrowser } from './oracle.ts'
import type { Peer, Phase, Visit } from './site.ts'
import type { Judgement, Tidegate } from './tidegate.ts'

/**
 * `loading` and `acting` are the two moments of an automated browser that hides nothing but what its tool hides.
 * `informed` are forgeries by somebody who has read this repository, and `informed-fresh` the same on a server that
 * has learned nothing. A `forger` has an attack that says more.
 */
export type Kind = 'loading' | 'acting' | Exclude<Case['kind'], 'automation'>

/** Environment of a case: a fresh folder, its own page, a seed, and an end. */
export interface Stage {
  /** Name of the case. */
  name: string
  visit: Visit
  /** Folder for the profile; removed afterwards. */
  folder: string
  desktop: Desktop
  tidegate: Tidegate
  seed: string
  signal: AbortSignal
  /** Resolves with the bodies that the first acting person's browser sent. */
  recording(): Promise<SentObservations[]>
  /** Opens the browser the first time. */
  oracle(browser: OracleBrowser): Promise<AnswerTable>
}

/** Judgement of a session at a phase. */
export interface Outcome extends Judgement {
  phase: Phase
  sessionId: string
  botd: Peer | null
  fpscanner: Peer | null
  /** Place in a mass run, from 1, in the order of the hand-offs. */
  nth?: number
}

export interface Case {
  name: string
  kind: 'automation' | 'evasion' | 'forgery' | 'informed' | 'informed-fresh' | 'forger' | 'person'

  /** True if the server has learned nothing. */
  isFresh?: boolean
  attack?: Attack
  family: string
  framework: string
  version: string
  /** True if the case uses so little CPU that several can run concurrently, each with its own desktop. */
  isSlow?: boolean
  /** Reports each outcome. Throws if a later phase failed. */
  run(stage: Stage, onOutcome: (outcome: Outcome) => void): Promise<void>
}

export function kindOf(kind: Case['kind'], phase: Phase): Kind {
  if (kind !== 'automation') return kind
  return phase === 'act' ? 'acting' : 'loading'
}
