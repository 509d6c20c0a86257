import type { EngineAnswer, EngineQuestion } from '../../../../infra/wire/collect/protocol.ts'
import { sha256Of } from '../hashes.ts'
import { apply, construct as constructed, isArray, isRealmAttached, realmWindow } from '../realm.ts'
import { member, yieldToPage } from '../support.ts'

// Characters; of a longer answer only the start of its SHA-256 is sent.
const longest = 100

/** Answers each question in the fresh realm, whose built-ins no library of the page has wrapped. */
export async function answerQuestions(
  questions: readonly EngineQuestion[],
): Promise<EngineAnswer[]> {
  const realm = realmWindow !== null && isRealmAttached() ? realmWindow : window
  const answers: EngineAnswer[] = []
  for (const question of questions) {
    await yieldToPage()
    answers.push({ id: question.id, answer: await shortened(answer(question, realm)) })
  }
  return answers
}

function answer(question: EngineQuestion, realm: object): string {
  try {
    return textOf(ask(question, realm))
  } catch (error) {
    return `${member(error, 'name')}: ${member(error, 'message')}`
  }
}

function ask(
  { ask, path = '', on, args = [], then = '', with: more = [], text = '' }: EngineQuestion,
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
      const made: unknown = construct(resolve(realm, path).value, args)
      return then === '' ? made : call(member(made, then), made, more)
    }
    case 'css':
      return CSS.supports(text)
    case 'style':
      return readBack(text)
    case 'lines':
      return linesOf(text)
    case 'computed':
      return computedOf(text, path)
    case 'path':
      return alongPath(text, args)
    case 'inside':
      return insideOf(text, args)
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
  return typeof code === 'function' ? constructed(code, args) : 'absent'
}

// Type and text of a primitive, each element of a list, and only the kind of anything else.
function textOf(value: unknown): string {
  if (isArray(value)) return `[${value.map(textOf).join()}]`
  if (typeof value === 'object' && value !== null) return Object.prototype.toString.call(value)
  return typeof value === 'function'
    ? 'function'
    : `${typeof value} ${Object.is(value, -0) ? '-0' : String(value)}`
}

function readBack(text: string): string {
  const element = document.createElement('i')
  element.style.cssText = text
  return element.style.cssText
}

// A page's rules for all elements must change neither how a text is broken nor how long a path is.
const unstyled =
  'all:initial;direction:ltr;display:block!important;position:absolute;visibility:hidden'

// How often a text is broken where there is no room at all: a matter of the engine's rules, not of fonts.
function linesOf(text: string): number {
  const box = document.createElement('div')
  box.style.cssText = `${unstyled};width:0;font-size:10px`
  box.lang = 'en'
  const line = document.createElement('span')
  line.textContent = text
  box.append(line)
  return inPage(box, () => line.getClientRects().length)
}

function computedOf(text: string, property: string): string {
  const element = document.createElement('i')
  element.style.cssText = text
  return inPage(element, () => getComputedStyle(element).getPropertyValue(property))
}

// One digit: versions and processors round the others differently.
function alongPath(text: string, [share]: unknown[]): string {
  return withPath(text, (path) => {
    const length = path.getTotalLength()
    const { x, y } = path.getPointAtLength(length * Number(share))
    return [length, x, y].map((value) => value.toFixed(1)).join()
  })
}

// Without a canvas, which the minimal mode does not touch.
function insideOf(text: string, sizes: unknown[]): string {
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

function withPath(text: string, ask: (path: SVGPathElement, point: DOMPoint) => string): string {
  const image = document.createElementNS(svg, 'svg')
  image.style.cssText = `${unstyled};width:0;height:0`
  const path = document.createElementNS(svg, 'path')
  path.setAttribute('d', text)
  image.append(path)
  return inPage(image, () => ask(path, image.createSVGPoint()))
}

function inPage<T>(element: Element, ask: () => T): T {
  const host = document.body ?? document.documentElement
  host.append(element)
  try {
    return ask()
  } finally {
    element.remove()
  }
}

async function shortened(text: string): Promise<string> {
  return text.length > longest ? `#${(await sha256Of(text)).slice(0, 16)}` : text
}
