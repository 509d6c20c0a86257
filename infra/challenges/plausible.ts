import type { EngineAnswer, EngineQuestion } from '../wire/collect/protocol.ts'
import { recordedAnswers } from './challenges.ts'

/** Form of an answer: the name of an error, the type of a value, or `hash` for a long text that was hashed. */
type Form = string

const isHash = (answer: string) => /^#[0-9a-f]{16}$/.test(answer)
const errorPattern = /^([A-Z]\w*): /
const typePattern = /^(string|number|boolean|undefined|bigint|symbol|object|function|absent|\[)/

function formOf(answer: string): Form | undefined {
  if (isHash(answer)) return 'hash'
  return errorPattern.exec(answer)?.[1] ?? typePattern.exec(answer)?.[1]
}

const isText = (form: Form) => form === 'string' || form === '[' || /^[A-Z]/.test(form)

/** Returns false for an answer of a form that no engine gives to the question. */
export function isPlausible(question: EngineQuestion, answer: string): boolean {
  const recorded = recordedAnswers(question.id)
  return recorded.length > 0 ? hasRecordedForm(answer, recorded) : hasFormOfKind(question, answer)
}

// Blink, Gecko and WebKitGTK agree on the form of nine in ten answers, so a form that none of them gives is made up.
function hasRecordedForm(answer: string, recorded: readonly string[]): boolean {
  const form = formOf(answer)
  if (form === undefined) return false
  const forms = recorded.map(formOf)
  // A hash may replace any long text.
  return forms.includes(form) || (forms.includes('hash') && isText(form))
}

function hasFormOfKind({ ask, text = '', path = '' }: EngineQuestion, answer: string): boolean {
  switch (ask) {
    case 'style':
      return isHash(answer) || (answer.startsWith('string ') && answer.includes(rootOf(text)))
    case 'computed':
      return isHash(answer) || (computedForms[path]?.test(answer) ?? /^string ./.test(answer))
    case 'path':
      return isPointOn(text, answer)
    case 'inside':
      // The list of points is always longer than an answer may be.
      return isHash(answer)
    case 'lines': {
      const lines = Number(/^number (\d{1,3})$/.exec(answer)?.[1] ?? 0)
      return lines >= 1 && lines <= text.length
    }
    default:
      return formOf(answer) !== undefined
  }
}

// Returns the first word of the property: `border-radius` may be read back as `border-top-left-radius`.
const rootOf = (declaration: string) => /^-?[a-z]+/.exec(declaration)?.[0] ?? ''

const computedForms: Record<string, RegExp> = {
  transform: /^string matrix\(/,
  'background-color': /^string (rgba?|color)\(/,
  filter: /^string .*blur\(/,
  'transition-timing-function': /^string cubic-bezier\(/,
  'background-image': /^string .*linear-gradient\(/,
  'box-shadow': /^string .*inset/,
}

// Checks an SVG path length and point: a path is at least as long as the straight line between its ends, and bounded.
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

/** Counts duplicates among answers that should be unique to a question: long texts and points. */
export function countRepeatedTexts(answers: readonly EngineAnswer[]): number {
  const texts = answers
    .map(({ answer }) => answer)
    .filter((answer) => answer.length > 12 && !errorPattern.test(answer))
  return texts.length - new Set(texts).size
}
