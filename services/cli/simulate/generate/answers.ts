import { hash } from 'node:crypto'
import { engineVersionOf, recordedAnswer } from '../../../../infra/challenges/challenges.ts'
import { answerMac } from '../../../../infra/wire/collect/client-crypto.ts'
import type { OpenResponse } from '../../../../infra/wire/collect/protocol.ts'
import type { Snapshot } from '../../../../schemas/observations.ts'

type Asked = Pick<OpenResponse, 'challenge' | 'timingNonce' | 'engineQuestions'>
type Answered = Pick<Snapshot['proofs'], 'canvas_challenge_hash' | 'engine_answers' | 'answer_mac'>

/** What the browser of a user agent would answer, by what was recorded from real ones. The drawing is made up. */
export function answersOf(userAgent: string, asked: Asked): Answered {
  const version = engineVersionOf(userAgent)
  const engine = asked.engineQuestions.map(({ id }) => ({
    id,
    answer: (version && recordedAnswer(version, id)) ?? 'boolean false',
  }))
  const canvas = hash('sha256', `drawn by ${userAgent} ${asked.challenge}`)
  return {
    canvas_challenge_hash: canvas,
    engine_answers: engine,
    answer_mac: answerMac(asked, { canvas, engine }),
  }
}
