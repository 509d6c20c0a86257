import { createHmac, hash } from 'node:crypto'
import type { MasterKey } from '../crypto/keyring.ts'
import { createLru, memoize } from '../lru.ts'
import type { EngineQuestion } from '../wire/collect/protocol.ts'
import { pickSlots, replacementCount } from './challenges.ts'

// The question bank: questions that only this deployment asks. Their parameters are derived from its master key, so a
// table of answers can only be collected here. A bank has `bankSize` slots, and each slot gets a new question every few
// weeks. No question is about numbers, dates or Intl, which a script in Node could answer with its own engine, or
// depends on fonts, zoom, scale or graphics, which vary between installations of a browser.

/** Questions in the bank at any time, one per slot. */
export const bankSize = 2048
/** Number of first slots whose questions are asked most, so that about 50 visitors suffice to learn their answers. */
export const frequentSize = 12

// Questions per document. `upcoming` ones become frequent within four weeks and must be learned by then.
const perDocument = { frequent: 6, upcoming: 2, others: 4 }
// A challenge starts with the number of a part of the bank. A source is asked from one part per day.
const partBytes = 2
const dayMs = 24 * 60 * 60 * 1000
const weekMs = 7 * dayMs
// Weeks until a slot's question is replaced. Slots are replaced in turn, some each week: collected answers become
// stale, but the whole bank never has to be learned again at once.
const lifetimeWeeks = { frequent: 12, others: 52 }
// Time for which questions are asked before they become frequent.
const upcomingMs = 4 * weekMs
// Smaller numbers belong to the questions in the repository (questions.ts).
const firstNumber = 10_000
// An id is `number + numberRange * (key + 1)`. It includes the master key, because each key yields other questions.
const numberRange = 2 ** 20

/** Returns the number of the question in a slot at `now` (epoch milliseconds). */
export function bankNumberAt(slot: number, now: number): number {
  const everyWeeks = slot < frequentSize ? lifetimeWeeks.frequent : lifetimeWeeks.others
  return firstNumber + replacementCount(slot, { everyWeeks, now }) * bankSize + slot
}

/** Returns the number of a bank question; undefined for the id of a question in the repository. */
export const bankNumberOf = (id: number): number | undefined =>
  id < numberRange ? undefined : id % numberRange

export const bankIdOf = (number: number, { id }: Pick<MasterKey, 'id'>): number =>
  (Number.parseInt(id.slice(0, 6), 16) + 1) * numberRange + number

const frequentSlots = Array.from({ length: frequentSize }, (_, slot) => slot)

/** Returns the numbers of the questions that are asked most. */
export const frequentNumbersAt = (now: number): number[] =>
  frequentSlots.map((slot) => bankNumberAt(slot, now))

/** Returns the numbers of all questions that are in the bank during a period (epoch milliseconds). */
export function bankNumbersBetween(from: number, until: number): number[] {
  const weeks = Array.from({ length: Math.ceil((until - from) / weekMs) + 1 }, (_, i) =>
    Math.min(from + i * weekMs, until),
  )
  const slots = Array.from({ length: bankSize }, (_, slot) => slot)
  return [...new Set(weeks.flatMap((at) => slots.map((slot) => bankNumberAt(slot, at))))]
}

/** Returns the part of the bank from which a source (see `sourceOf`) is asked on the day of `now` (UTC). */
export function bankPartOf(
  source: string,
  { now, master }: { now: number; master: MasterKey },
): number {
  const day = Math.floor(now / dayMs)
  const digest = createHmac('sha256', master.secretKey('question-part'))
    .update(`${source} ${day}`)
    .digest()
  return digest.readUInt16BE(0)
}

/** Returns a challenge that starts with the part. It determines the document's questions, so no event stores them. */
export function challengeWithPart(bytes: Buffer, part: number): string {
  const challenge = Buffer.from(bytes)
  challenge.writeUInt16BE(part, 0)
  return challenge.toString('base64url')
}

/**
 * Returns the numbers of a document's questions, derived from its challenge without the master key. Documents of one
 * part share the frequent questions and draw the others from that part. Memoized, because each body of a document needs
 * them.
 */
export const bankNumbersOf: (challenge: string, openedAt: number) => readonly number[] = memoize(
  2000,
  chooseNumbers,
)

function chooseNumbers(challenge: string, openedAt: number): number[] {
  const part = Buffer.from(challenge, 'base64url').toString('hex', 0, partBytes)
  const bytes = hash('sha512', `bank part ${part}`, 'buffer')
  const at = (from: number, count: number) => bytes.subarray(2 * from, 2 * (from + count))
  const frequent = pickSlots(at(0, perDocument.frequent), frequentSize)
  const replaced = frequentSlots.filter(
    (slot) => bankNumberAt(slot, openedAt) !== bankNumberAt(slot, openedAt + upcomingMs),
  )
  const upcoming = pickSlots(at(perDocument.frequent, perDocument.upcoming), replaced.length).map(
    (i) => replaced[i] ?? 0,
  )
  // Picks 32 slots: two bytes of the SHA-512 digest each.
  const partSlots = pickSlots(
    hash('sha512', `others of part ${part}`, 'buffer'),
    bankSize - frequentSize,
  )
  const others = pickSlots(
    hash('sha256', `bank ${challenge}`, 'buffer').subarray(0, 2 * perDocument.others),
    partSlots.length,
  )
  return [
    ...frequent.map((slot) => bankNumberAt(slot, openedAt)),
    ...upcoming.map((slot) => bankNumberAt(slot, openedAt + upcomingMs)),
    ...others.map((i) => bankNumberAt(frequentSize + (partSlots[i] ?? 0), openedAt)),
  ]
}

const questionCache = createLru<number, EngineQuestion>(2 * bankSize)

/** Returns the question with a number, the same in every process with the master key. */
export function bankQuestion(number: number, master: MasterKey): EngineQuestion {
  const id = bankIdOf(number, master)
  const question = questionCache.get(id) ?? { id, ...questionAt(number, master) }
  questionCache.set(id, question)
  return question
}

function questionAt(number: number, master: MasterKey): Omit<EngineQuestion, 'id'> {
  const bytes = createHmac('sha512', master.secretKey('question-bank'))
    .update(String(number))
    .digest()
  let drawn = 0
  // Each draw takes two bytes of the 64; after 32 draws they repeat.
  const draw = (range: number) => bytes.readUInt16BE((drawn++ % 32) * 2) % range
  return pick(draw, kinds)(draw)
}

/** Returns an integer from 0 up to, but excluding, `range`. */
type Draw = (range: number) => number
type Unnumbered = Omit<EngineQuestion, 'id'>

function pick<T>(draw: Draw, choices: readonly [T, ...T[]]): T {
  return choices[draw(choices.length)] ?? choices[0]
}

const list = (count: number, make: () => string, separator = ' ') =>
  Array.from({ length: count }, make).join(separator)
const tenths = (draw: Draw, range: number) => `${draw(range)}.${draw(9) + 1}`
const px = (draw: Draw) => `${tenths(draw, 90)}px`
const percent = (draw: Draw) => `${draw(100)}%`
const angle = (draw: Draw) => `${tenths(draw, 360)}${pick(draw, ['deg', 'grad'])}`
const color = (draw: Draw) =>
  pick(draw, [
    () => `rgba(${draw(256)},${draw(256)},${draw(256)},.${draw(9) + 1})`,
    () => `hsla(${tenths(draw, 360)},${percent(draw)},${percent(draw)},.${draw(99) + 1})`,
  ])()
const easing = (draw: Draw) =>
  `cubic-bezier(.${draw(99)},${draw(3) - 1}.${draw(9)},.${draw(99)},${draw(2)})`
// No lengths: on screens with a pixel ratio other than 1 the last digit of a matrix would differ.
const transforms = (draw: Draw) =>
  `rotate(${angle(draw)}) skewX(${draw(60)}deg) scale(${tenths(draw, 4)},${tenths(draw, 3)}) skewY(${angle(draw)})`
const filters = (draw: Draw) =>
  `blur(${px(draw)}) hue-rotate(${angle(draw)}) drop-shadow(${px(draw)} ${px(draw)} ${color(draw)})`

// Every engine has supported these for years, so all versions of an engine agree.
const declarations: readonly [(draw: Draw) => string, ...((draw: Draw) => string)[]] = [
  (draw) =>
    `background-image:radial-gradient(circle ${px(draw)} at ${percent(draw)} ${px(draw)},${color(draw)},${color(draw)} ${percent(draw)})`,
  (draw) => `border-radius:${list(3, () => px(draw))}/${list(2, () => percent(draw))}`,
  (draw) =>
    `animation:${draw(3) + 2}s ${easing(draw)} ${draw(900)}ms ${draw(8) + 2} alternate both n${draw(5000)}`,
  (draw) => `border:${px(draw)} ${pick(draw, ['solid', 'dotted', 'groove'])} ${color(draw)}`,
  (draw) =>
    `font:italic ${pick(draw, ['700', '500', 'bold'])} ${px(draw)}/${tenths(draw, 3)} f${draw(5000)},serif`,
  (draw) => `flex:${draw(9)} ${tenths(draw, 4)} ${px(draw)}`,
  (draw) => `margin:${list(2, () => px(draw))} -${px(draw)} ${percent(draw)}`,
  (draw) => `clip-path:polygon(${list(3, () => `${percent(draw)} ${px(draw)}`, ',')})`,
  (draw) => `text-shadow:${color(draw)} ${list(3, () => px(draw))},${px(draw)} ${px(draw)}`,
  (draw) => `transform:${transforms(draw)}`,
  (draw) => `filter:${filters(draw)}`,
  (draw) => `list-style:url(u${draw(5000)}) inside ${pick(draw, ['square', 'decimal', 'none'])}`,
]

const askStyle = (draw: Draw): Unnumbered => ({
  ask: 'style',
  text: pick(draw, declarations)(draw),
})

const askComputed = (draw: Draw): Unnumbered => {
  const [property, value] = pick<[string, string]>(draw, [
    ['transform', transforms(draw)],
    ['background-color', color(draw)],
    ['filter', filters(draw)],
    ['transition-timing-function', `${easing(draw)},steps(${draw(9) + 2},end)`],
    [
      'background-image',
      `linear-gradient(${tenths(draw, 360)}deg,${color(draw)},${color(draw)} ${percent(draw)})`,
    ],
    ['box-shadow', `inset ${color(draw)} ${list(4, () => px(draw))}`],
  ])
  return { ask: 'computed', text: `${property}:${value}!important`, path: property }
}

const point = (draw: Draw) => `${tenths(draw, 200)},${tenths(draw, 120)}`
const curves = (draw: Draw) =>
  `M${point(draw)}C${list(3, () => point(draw))}Q${list(2, () => point(draw))}A${draw(60) + 5},${draw(40) + 5} ${draw(90)} ${draw(2)} ${draw(2)} ${point(draw)}`

const askPath = (draw: Draw): Unnumbered => {
  const share = (draw(98) + 1) / 100
  return { ask: 'path', text: curves(draw), args: [share] }
}

// Samples only the fill, every few pixels: the coverage of a stroke depends on the scale.
const askInside = (draw: Draw): Unnumbered => ({
  ask: 'inside',
  text: `${curves(draw)}Z`,
  args: [200, 120, draw(4) + 11],
})

// Characters of many line breaking classes (UAX #14). Leaves out quotation marks, small kana and Indic letters, whose
// rules Unicode changed recently, so that versions of an engine agree.
const lineBreakCharacters = [
  'a',
  'X',
  '7',
  '.',
  ',',
  '-',
  '/',
  '?',
  '%',
  '(',
  ')',
  '[',
  ' ',
  '  ',
  '$',
  'e\u0301',
  '\u00e9',
  '\u00a0',
  '\u2013',
  '\u2026',
  '\u200b',
  '\u6f22',
  '\u3042',
  '\u3001',
  '\uac00',
  '\u0627',
  '\u05d0',
] as const
const askLines = (draw: Draw): Unnumbered => ({
  ask: 'lines',
  text: list(20, () => lineBreakCharacters[draw(lineBreakCharacters.length)] ?? '', ''),
})

type Kind = (draw: Draw) => Unnumbered
const kinds: readonly [Kind, ...Kind[]] = [askStyle, askComputed, askPath, askInside, askLines]
