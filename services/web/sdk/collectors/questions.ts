import type { EngineAnswer, EngineQuestion } from '../../../../infra/wire/collect/protocol.ts'
import { sha256Of } from '../hashes.ts'
import { apply, construct as instantiate, isArray, isRealmAttached, realmWindow } from '../realm.ts'
import { member, yieldToPage } from '../support.ts'

// Longer answers are replaced by the beginning of their SHA-256.
const maxAnswerLength = 100

/** Answers each question in the clean realm, whose built-ins the page has not wrapped. */
export async function answerQuestions(
  questions: readonly EngineQuestion[],
): Promise<EngineAnswer[]> {
  const realm = realmWindow !== null && isRealmAttached() ? realmWindow : window
  const answers: EngineAnswer[] = []
  for (const question of questions) {
    await yieldToPage()
    answers.push({ id: question.id, answer: await shorten(answerText(question, realm)) })
  }
  return answers
}

function answerText(question: EngineQuestion, realm: object): string {
  try {
    return describeValue(evaluateQuestion(question, realm))
  } catch (error) {
    return `${member(error, 'name')}: ${member(error, 'message')}`
  }
}

function evaluateQuestion(
  { ask, path = '', on, args = [], then = '', with: moreArgs = [], text = '' }: EngineQuestion,
  realm: object,
) {
  switch (ask) {
    case 'read':
      return resolve(realm, path).value
    case 'call': {
      const { value, owner } = resolve(realm, path)
      return call(value, on === undefined ? owner : on, args)
    }
    case 'make': {
      const instance: unknown = construct(resolve(realm, path).value, args)
      return then === '' ? instance : call(member(instance, then), instance, moreArgs)
    }
    case 'css':
      return CSS.supports(text)
    case 'style':
      return normalizedCss(text)
    case 'lines':
      return countLines(text)
    case 'computed':
      return computedStyle(text, path)
    case 'path':
      return measurePath(text, args)
    case 'inside':
      return pointsInFill(text, args)
    default:
      return null
  }
}

function resolve(realm: object, path: string): { value: unknown; owner: unknown } {
  let owner: unknown
  let value: unknown = realm
  for (const name of path.split('.')) {
    owner = value
    value = member(owner, name)
  }
  return { value, owner }
}

function call(code: unknown, on: unknown, args: unknown[]): unknown {
  return typeof code === 'function' ? apply(code, on, args) : 'absent'
}

function construct(code: unknown, args: unknown[]): unknown {
  return typeof code === 'function' ? instantiate(code, args) : 'absent'
}

// Formats the type and value of a primitive, the elements of an array, and of other objects only the kind.
function describeValue(value: unknown): string {
  if (isArray(value)) return `[${value.map(describeValue).join()}]`
  if (typeof value === 'object' && value !== null) return Object.prototype.toString.call(value)
  return typeof value === 'function'
    ? 'function'
    : `${typeof value} ${Object.is(value, -0) ? '-0' : String(value)}`
}

function normalizedCss(text: string): string {
  const element = document.createElement('i')
  element.style.cssText = text
  return element.style.cssText
}

// Protects measurements from the page's styles.
const unstyled =
  'all:initial;direction:ltr;display:block!important;position:absolute;visibility:hidden'

// Counts the lines of a text at zero width. The number depends on the engine's line-breaking rules, not on fonts.
function countLines(text: string): number {
  const box = document.createElement('div')
  box.style.cssText = `${unstyled};width:0;font-size:10px`
  box.lang = 'en'
  const line = document.createElement('span')
  line.textContent = text
  box.append(line)
  return whileInPage(box, () => line.getClientRects().length)
}

function computedStyle(text: string, property: string): string {
  const element = document.createElement('i')
  element.style.cssText = text
  return whileInPage(element, () => getComputedStyle(element).getPropertyValue(property))
}

// Rounds to one digit, because the others depend on the browser version and the processor.
function measurePath(text: string, [share]: unknown[]): string {
  return withPath(text, (path) => {
    const length = path.getTotalLength()
    const { x, y } = path.getPointAtLength(length * Number(share))
    return [length, x, y].map((value) => value.toFixed(1)).join()
  })
}

// Uses SVG, because the minimal mode uses no canvas.
function pointsInFill(text: string, sizes: unknown[]): string {
  const [width = 0, height = 0, step = 1] = sizes.map(Number)
  return withPath(text, (path, point) => {
    path.style.cssText = 'fill-rule:evenodd'
    let bits = ''
    for (point.y = 0; point.y < height; point.y += step)
      for (point.x = 0; point.x < width; point.x += step) bits += Number(path.isPointInFill(point))
    return bits
  })
}

const svg = 'http://www.w3.org/2000/svg'

function withPath(text: string, use: (path: SVGPathElement, point: DOMPoint) => string): string {
  const image = document.createElementNS(svg, 'svg')
  image.style.cssText = `${unstyled};width:0;height:0`
  const path = document.createElementNS(svg, 'path')
  path.setAttribute('d', text)
  image.append(path)
  return whileInPage(image, () => use(path, image.createSVGPoint()))
}

function whileInPage<T>(element: Element, measure: () => T): T {
  const host = document.body ?? document.documentElement
  host.append(element)
  try {
    return measure()
  } finally {
    element.remove()
  }
}

async function shorten(text: string): Promise<string> {
  return text.length > maxAnswerLength ? `#${(await sha256Of(text)).slice(0, 16)}` : text
}
