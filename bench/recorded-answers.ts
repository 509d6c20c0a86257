import { hash } from 'node:crypto'
import { bankNumberOf } from '../infra/challenges/bank.ts'
import { engineVersionOf, recordedAnswer } from '../infra/challenges/challenges.ts'
import { answerMac } from '../infra/wire/collect/client-crypto.ts'
import type { OpenResponse } from '../infra/wire/collect/protocol.ts'
import type { ProofAnswers } from '../services/cli/simulate/generate/answers.ts'

type Asked = Pick<OpenResponse, 'challenge' | 'timingNonce' | 'engineQuestions'>

// Apple's WebKit could not be recorded, and this one shares its JavaScript engine.
const nearest = { family: 'webkitgtk', major: 60 } as const

/**
 * What whoever has read this repository answers in the name of a browser: what was recorded from real ones. The drawing
 * is made up, and the deployment's own questions stay open. For evaluation and tests alone: a deployment that has
 * learned nothing yet believes it, as docs/reports/detection.md says.
 */
export function answersOf(userAgent: string, asked: Asked): ProofAnswers {
  const version = engineVersionOf(userAgent)
  const recorded = asked.engineQuestions.filter(({ id }) => bankNumberOf(id) === undefined)
  const engine = recorded.map(({ id }) => ({
    id,
    answer: (version && recordedAnswer(version, id)) ?? recordedAnswer(nearest, id) ?? 'boolean false',
  }))
  const canvas = hash('sha256', `drawn by ${userAgent} ${asked.challenge}`)
  return {
    canvas_challenge_hash: canvas,
    engine_answers: engine,
    answer_mac: answerMac(asked, { canvas, engine }),
  }
}
