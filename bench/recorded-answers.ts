import { hash } from 'node:crypto'
import { bankNumberOf } from '../infra/challenges/bank.ts'
import { engineVersionOf, recordedAnswer } from '../infra/challenges/challenges.ts'
import { answerMac } from '../infra/wire/collect/client-crypto.ts'
import type { EngineQuestion, OpenResponse } from '../infra/wire/collect/protocol.ts'
import type { ProofAnswers } from '../services/cli/simulate/generate/answers.ts'

type Asked = Pick<OpenResponse, 'challenge' | 'timingNonce' | 'engineQuestions'>

// Apple's WebKit could not be recorded. This one shares its JavaScript engine.
const nearest = { family: 'webkitgtk', major: 60 } as const

/**
 * Returns answers of a forger who knows this repository: recorded ones to public questions, and invented ones in the
 * right format to private questions and the drawing. For evaluation and tests only.
 */
export function answersOf(userAgent: string, asked: Asked): ProofAnswers {
  const version = engineVersionOf(userAgent)
  const engine = asked.engineQuestions.map((question) => ({
    id: question.id,
    answer:
      bankNumberOf(question.id) === undefined
        ? ((version && recordedAnswer(version, question.id)) ??
          recordedAnswer(nearest, question.id) ??
          'boolean false')
        : shortened(inventedAnswer(question)),
  }))
  const canvas = hash('sha256', `drawn by ${userAgent} ${asked.challenge}`)
  return {
    canvas_challenge_hash: canvas,
    engine_answers: engine,
    answer_mac: answerMac(asked, { canvas, engine }),
  }
}

// Like the SDK, for long answers.
const shortened = (answer: string) =>
  answer.length > 100 ? `#${hash('sha256', answer).slice(0, 16)}` : answer

/** Invents an answer to a private question in the format of a real one. */
function inventedAnswer({ id, ask, text = '', path = '' }: EngineQuestion): string {
  const hashed = `#${hash('sha256', String(id)).slice(0, 16)}`
  const value = text.slice(text.indexOf(':') + 1)
  switch (ask) {
    case 'style':
      return `string ${text};`
    case 'computed':
      return path === 'transform' ? `string matrix(1, 0.${id}, 0, 1, 0, 0)` : `string ${value}`
    case 'path': {
      const [x = 0, y = 0] = text.match(/-?\d+(\.\d+)?/g)?.map(Number) ?? []
      return `string ${400 + (id % 100)}.5,${x.toFixed(1)},${y.toFixed(1)}`
    }
    case 'lines':
      return `number ${3 + (id % 5)}`
    default:
      return hashed
  }
}
