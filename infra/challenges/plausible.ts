import type { EngineAnswer, EngineQuestion } from '../wire/collect/protocol.ts'
import { recordedAnswers } from './challenges.ts'

/** The form of an answer: the name of an error, or the type of a value. `hash`: of a text too long to send. */
type Form = string

const hashed = /^#[0-9a-f]{16}$/
const thrown = /^([A-Z]\w*): /
const typed = /^(string|number|boolean|undefined|bigint|symbol|object|function|absent|\[)/

function formOf(answer: string): Form | undefined {
  if (hashed.test(answer)) return 'hash'
  return thrown.exec(answer)?.[1] ?? typed.exec(answer)?.[1]
}

const isText = (form: Form) => form === 'string' || form === '[' || /^[A-Z]/.test(form)

/** Returns false for an answer whose form is none that an engine gives to the question, whichever engine it is. */
export function isPlausible(question: EngineQuestion, answer: string): boolean {
  const recorded = recordedAnswers(question.id)
  return recorded.length > 0 ? hasRecordedForm(answer, recorded) : hasFormOfKind(question, answer)
}

// Blink, Gecko and WebKitGTK agree on the form of nine in ten answers, and one that none of them gives is invented.
function hasRecordedForm(answer: string, recorded: readonly string[]): boolean {
  const form = formOf(answer)
  if (form === undefined) return false
  const forms = recorded.map(formOf)
  // A hash stands for any long text.
  return forms.includes(form) || (forms.includes('hash') && isText(form))
}

function hasFormOfKind({ ask, text = '', path = '' }: EngineQuestion, answer: string): boolean {
  switch (ask) {
    case 'style':
      return hashed.test(answer) || (answer.startsWith('string ') && answer.includes(rootOf(text)))
    case 'computed':
      return hashed.test(answer) || (computedForms[path]?.test(answer) ?? /^string ./.test(answer))
    case 'path':
      return isPointOn(text, answer)
    case 'inside':
      // More points than an answer may have characters.
      return hashed.test(answer)
    case 'lines': {
      const lines = Number(/^number (\d{1,3})$/.exec(answer)?.[1] ?? 0)
      return lines >= 1 && lines <= text.length
    }
    default:
      return formOf(answer) !== undefined
  }
}

// `border-radius` may be read back as `border-top-left-radius`.
const rootOf = (declaration: string) => /^-?[a-z]+/.exec(declaration)?.[0] ?? ''

const computedForms: Record<string, RegExp> = {
  transform: /^string matrix\(/,
  'background-color': /^string (rgba?|color)\(/,
  filter: /^string .*blur\(/,
  'transition-timing-function': /^string cubic-bezier\(/,
  'background-image': /^string .*linear-gradient\(/,
  'box-shadow': /^string .*inset/,
}

// No path is shorter than the straight line between its ends, or longer than all of its control points and arcs allow.
function isPointOn(text: string, answer: string): boolean {
  const numbers = /^string (\d+\.\d),(-?\d+\.\d),(-?\d+\.\d)$/.exec(answer)?.slice(1).map(Number)
  if (!numbers) return false
  const [length = 0, x = 0, y = 0] = numbers
  const [startX = 0, startY = 0, ...rest] = text.match(/-?\d+(\.\d+)?/g)?.map(Number) ?? []
  const [endX = 0, endY = 0] = rest.slice(-2)
  const straight = Math.hypot(endX - startX, endY - startY)
  const fromStart = Math.hypot(x - startX, y - startY)
  return length >= straight - 1 && length < 3000 && fromStart <= length + 1
}

/** Answers to different questions of which none can be equal: long texts, and points. */
export function repeatedTexts(answers: readonly EngineAnswer[]): number {
  const texts = answers
    .map(({ answer }) => answer)
    .filter((answer) => answer.length > 12 && !thrown.test(answer))
  return texts.length - new Set(texts).size
}
