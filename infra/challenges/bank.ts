import { createHmac, hash } from 'node:crypto'
import type { MasterKey } from '../crypto/keyring.ts'
import { createLru, memoized } from '../lru.ts'
import type { EngineQuestion } from '../wire/collect/protocol.ts'
import { pickPlaces, timesReplaced } from './challenges.ts'

// A deployment's own questions. Their parameters come from its master key, so nobody has a table of their answers who
// has not collected it there. None is about numbers, dates or Intl, because a script in Node could answer it with its own
// engine. None depends on fonts, zoom, scale or graphics, because browsers of one kind would not agree.

/** So many questions there are at a time. */
export const bankSize = 2048
/** So many of them, in the first places, are used most, so that some 50 visitors teach their answers. */
export const frequentSize = 12

// Questions per document by kind. `soon` are those that become frequent within four weeks, to be learned by then.
const asked = { frequent: 6, soon: 2, others: 4 }
// A challenge begins with the number of the part of the bank that its source is asked on that day.
const partBytes = 2
const dayMs = 24 * 60 * 60 * 1000
const weekMs = 7 * dayMs
// A question gives way to another one after so many weeks, and each week some do. So what somebody collected gets old,
// and nothing waits until a whole new bank is learned.
const lifetimeWeeks = { frequent: 12, others: 52 }
// A question is asked this long before it becomes frequent.
const soonMs = 4 * weekMs
// The numbers below are for the questions of the repository.
const firstNumber = 10_000
// An id has the number of its question, and above it the master key, because each key makes other questions.
const numbers = 2 ** 20

/** The number of the question that stands in a place of the bank at a time, in epoch milliseconds. */
export function bankNumberAt(place: number, now: number): number {
  const everyWeeks = place < frequentSize ? lifetimeWeeks.frequent : lifetimeWeeks.others
  return firstNumber + timesReplaced(place, { everyWeeks, now }) * bankSize + place
}

/** undefined for an id that is of the repository's questions. */
export const bankNumberOf = (id: number): number | undefined =>
  id < numbers ? undefined : id % numbers

export const bankIdOf = (number: number, { id }: Pick<MasterKey, 'id'>): number =>
  (Number.parseInt(id.slice(0, 6), 16) + 1) * numbers + number

const frequentPlaces = Array.from({ length: frequentSize }, (_, place) => place)

/** The numbers of the questions that are asked most. */
export const frequentNumbersAt = (now: number): number[] =>
  frequentPlaces.map((place) => bankNumberAt(place, now))

/** Every number that stands in the bank at some time between two, in epoch milliseconds. */
export function bankNumbersBetween(from: number, until: number): number[] {
  const weeks = Array.from({ length: Math.ceil((until - from) / weekMs) + 1 }, (_, i) =>
    Math.min(from + i * weekMs, until),
  )
  const places = Array.from({ length: bankSize }, (_, place) => place)
  return [...new Set(weeks.flatMap((at) => places.map((place) => bankNumberAt(place, at))))]
}

/** The number of the part of the bank that a source (see `sourceOf`) is asked on a day (UTC). */
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

/** A challenge of the part. Whoever has it can tell the document's questions, so no event needs them. */
export function challengeWithPart(bytes: Buffer, part: number): string {
  const challenge = Buffer.from(bytes)
  challenge.writeUInt16BE(part, 0)
  return challenge.toString('base64url')
}

/**
 * The numbers of a document's questions. They follow from its challenge, but the questions do not. Documents of one part
 * are asked the same frequent questions, and some of the part's others. Each body of a document asks for them again.
 */
export const bankNumbersOf: (challenge: string, openedAt: number) => readonly number[] = memoized(
  2000,
  chooseNumbers,
)

function chooseNumbers(challenge: string, openedAt: number): number[] {
  const part = Buffer.from(challenge, 'base64url').toString('hex', 0, partBytes)
  const bytes = hash('sha512', `bank part ${part}`, 'buffer')
  const at = (from: number, count: number) => bytes.subarray(2 * from, 2 * (from + count))
  const frequent = pickPlaces(at(0, asked.frequent), frequentSize)
  const replaced = frequentPlaces.filter(
    (place) => bankNumberAt(place, openedAt) !== bankNumberAt(place, openedAt + soonMs),
  )
  const soon = pickPlaces(at(asked.frequent, asked.soon), replaced.length).map(
    (i) => replaced[i] ?? 0,
  )
  // 32, because two bytes of the digest pick each.
  const ofPart = pickPlaces(
    hash('sha512', `others of part ${part}`, 'buffer'),
    bankSize - frequentSize,
  )
  const others = pickPlaces(
    hash('sha256', `bank ${challenge}`, 'buffer').subarray(0, 2 * asked.others),
    ofPart.length,
  )
  return [
    ...frequent.map((place) => bankNumberAt(place, openedAt)),
    ...soon.map((place) => bankNumberAt(place, openedAt + soonMs)),
    ...others.map((i) => bankNumberAt(frequentSize + (ofPart[i] ?? 0), openedAt)),
  ]
}

const made = createLru<number, EngineQuestion>(2 * bankSize)

/** The question of a number. Every process with the master key makes the same one. */
export function bankQuestion(number: number, master: MasterKey): EngineQuestion {
  const id = bankIdOf(number, master)
  const question = made.get(id) ?? { id, ...questionAt(number, master) }
  made.set(id, question)
  return question
}

function questionAt(number: number, master: MasterKey): Omit<EngineQuestion, 'id'> {
  const bytes = createHmac('sha512', master.secretKey('question-bank'))
    .update(String(number))
    .digest()
  let drawn = 0
  // Each draw takes two bytes, and the first ones again after 32 draws.
  const draw = (range: number) => bytes.readUInt16BE((drawn++ % 32) * 2) % range
  return pick(draw, kinds)(draw)
}

/** An integer from 0 up to, and without, the range. */
type Draw = (range: number) => number
type Unnumbered = Omit<EngineQuestion, 'id'>

function pick<T>(draw: Draw, from: readonly [T, ...T[]]): T {
  return from[draw(from.length)] ?? from[0]
}

const list = (count: number, make: () => string, between = ' ') =>
  Array.from({ length: count }, make).join(between)
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
// Without lengths: where the screen's pixels are not those of CSS, the last digit of a matrix would differ.
const turns = (draw: Draw) =>
  `rotate(${angle(draw)}) skewX(${draw(60)}deg) scale(${tenths(draw, 4)},${tenths(draw, 3)}) skewY(${angle(draw)})`
const filters = (draw: Draw) =>
  `blur(${px(draw)}) hue-rotate(${angle(draw)}) drop-shadow(${px(draw)} ${px(draw)} ${color(draw)})`

// Each has been in every engine for long, so that versions of one engine agree.
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
  (draw) => `transform:${turns(draw)}`,
  (draw) => `filter:${filters(draw)}`,
  (draw) => `list-style:url(u${draw(5000)}) inside ${pick(draw, ['square', 'decimal', 'none'])}`,
]

const readBack = (draw: Draw): Unnumbered => ({
  ask: 'style',
  text: pick(draw, declarations)(draw),
})

const computed = (draw: Draw): Unnumbered => {
  const [property, value] = pick<[string, string]>(draw, [
    ['transform', turns(draw)],
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

const along = (draw: Draw): Unnumbered => {
  const share = (draw(98) + 1) / 100
  return { ask: 'path', text: curves(draw), args: [share] }
}

// A point in every so many pixels. Of what a stroke covers engines have another idea at each scale.
const inside = (draw: Draw): Unnumbered => ({
  ask: 'inside',
  text: `${curves(draw)}Z`,
  args: [200, 120, draw(4) + 11],
})

// Characters of many classes of the rules for breaking lines (UAX #14). Those whose rules Unicode changed lately are left out, so
// that versions of one engine agree: quotation marks, small kana and the letters of Indic scripts.
const breaking = [
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
const broken = (draw: Draw): Unnumbered => ({
  ask: 'lines',
  text: list(20, () => breaking[draw(breaking.length)] ?? '', ''),
})

type Kind = (draw: Draw) => Unnumbered
const kinds: readonly [Kind, ...Kind[]] = [readBack, computed, along, inside, broken]
