import { hash } from 'node:crypto'
import { createLru } from '../lru.ts'
import type {
  CanvasChallenge,
  CanvasOp,
  EngineAnswer,
  EngineQuestion,
} from '../wire/collect/protocol.ts'
import recorded from './known-answers.json' with { type: 'json' }
import { questionBank } from './questions.ts'

/**
 * The questions of a document, which follow from its challenge. There are some
 * of each kind, so that neither a bare JavaScript engine nor another version of the browser answers them all.
 */
export function questionsOf(challenge: string): EngineQuestion[] {
  const { language, platform, version } = questionBank
  const bytes = hash('sha256', `questions ${challenge}`, 'buffer')
  return [
    ...pick(language, bytes.subarray(0, 8)),
    ...pick(platform, bytes.subarray(8, 18)),
    ...pick(version, bytes.subarray(18, 24)),
  ]
}

function pick(from: readonly EngineQuestion[], bytes: Buffer): EngineQuestion[] {
  return pickPlaces(bytes, from.length).flatMap((place) => from[place] ?? [])
}

const pool = 64

/** One of 64 drawings, of which one is replaced each week: answers are learned by the drawing. */
export function canvasSeedOf(challenge: string, now: number): string {
  const slot = hash('sha256', `canvas ${challenge}`, 'buffer').readUInt16BE(0) % pool
  return `${slot}.${timesReplaced(slot, { everyWeeks: pool, now })}`
}

const width = 120
const height = 40

/** Curves, arcs at fractions of a pixel and soft edges, which graphics stacks round differently. Every other drawing has text. */
export function canvasChallengeOf(seed: string): CanvasChallenge {
  const bytes = hash('sha512', `drawing ${seed}`, 'buffer')
  const at = (index: number, range: number) =>
    Math.round(((bytes[index] ?? 0) / 256) * range * 100) / 100
  const color = (index: number) => `#${bytes.toString('hex', index, index + 3)}`
  const points = Array.from({ length: 8 }, (_, i) => at(i, i % 2 === 0 ? width : height))
  const turn = { start: at(12, 6), end: at(13, 6) }
  const ops: CanvasOp[] = [
    {
      op: 'rect',
      x: at(14, 60),
      y: at(15, 20),
      width: 20 + at(16, 40),
      height: 8 + at(17, 12),
      color: color(18),
    },
    { op: 'curve', points, width: 1 + at(8, 6), blur: at(9, 4), color: color(21) },
    {
      op: 'arc',
      x: 20 + at(10, 80),
      y: 10 + at(11, 20),
      radius: 5 + at(24, 12),
      ...turn,
      color: color(25),
    },
    {
      op: 'curve',
      points: [...points].reverse(),
      width: 0.5 + at(28, 3),
      blur: 0,
      color: color(29),
    },
  ]
  return { ops: hasText(seed) ? [...ops, textOp(seed, at, color)] : ops, width, height }
}

const hasText = (seed: string) => Number(seed.split('.')[0]) % 2 === 0

function textOp(
  seed: string,
  at: (index: number, range: number) => number,
  color: (index: number) => string,
): CanvasOp {
  const text = hash('sha256', seed, 'base64url').slice(0, 8)
  return {
    op: 'text',
    x: at(32, 40),
    y: 14 + at(33, 20),
    size: 10 + Math.round(at(34, 10)),
    text,
    color: color(35),
  }
}

/** `webkit` is Apple's. WebKitGTK is apart, because Safari answers otherwise. */
export const engineFamilies = ['blink', 'gecko', 'webkit', 'webkitgtk'] as const
export type EngineFamily = (typeof engineFamilies)[number]

export interface EngineVersion {
  family: EngineFamily
  major: number
}

/** As answers are learned and recorded by: `blink 156`. */
export const engineName = ({ family, major }: EngineVersion): string => `${family} ${major}`

/**
 * The engine behind a user agent string. Every browser on iOS is WebKit, of the system's version where it names no
 * other. The web view of an app names none on other systems, and has version 0.
 */
export function engineVersionOf(userAgent: string): EngineVersion | null {
  const major = (pattern: RegExp) => Number(pattern.exec(userAgent)?.[1] ?? Number.NaN)
  const found = (family: EngineFamily, version: number) =>
    Number.isNaN(version) ? null : { family, major: version }
  if (/\b(iPhone|iPad|iPod)\b/.test(userAgent))
    return found('webkit', major(/Version\/(\d{1,4})/)) ?? found('webkit', major(/ OS (\d{1,4})_/))
  const webKit = isLinux.test(userAgent) ? 'webkitgtk' : 'webkit'
  return (
    found('gecko', major(/\bFirefox\/(\d{1,4})/)) ??
    found('blink', major(/Chrom(?:e|ium)\/(\d{1,4})/)) ??
    found(webKit, major(/Version\/(\d{1,4})[\d.]* .*Safari\//)) ??
    (/\bAppleWebKit\//.test(userAgent) ? { family: webKit, major: 0 } : null)
  )
}

const isLinux = /\b(X11|Linux)\b/

interface Recorded {
  major: number
  answers: Record<string, string>
}

// Answers by version that were recorded from real browsers (docs/reports/detection.md says how), oldest first.
const versions: Record<EngineFamily, Recorded[]> = {
  blink: [],
  gecko: [],
  webkit: [],
  webkitgtk: [],
}
for (const [name, answers] of Object.entries(recorded)) {
  const [family = '', major] = name.split(' ')
  if (family === 'blink' || family === 'gecko' || family === 'webkitgtk')
    versions[family].push({ major: Number(major), answers })
}
for (const list of Object.values(versions)) list.sort((one, other) => one.major - other.major)

const changing = new Set(questionBank.version.map(({ id }) => id))
const aboutLanguage = new Set(questionBank.language.map(({ id }) => id))

/**
 * The answer of this version of an engine, or undefined where it is not known. A version that was not recorded
 * answers as both of its neighbours do where they agree. Before the oldest and after the newest one, that holds of
 * questions whose answer seldom changes.
 */
export function recordedAnswer(version: EngineVersion, question: number): string | undefined {
  const name = engineName(version)
  const known = byEngine.get(name)
  if (known) return known.get(question)
  const answers = new Map(
    Object.values(questionBank)
      .flat()
      .map(({ id }) => [id, answerOf(version, id)]),
  )
  byEngine.set(name, answers)
  return answers.get(question)
}

const byEngine = createLru<string, Map<number, string | undefined>>(200)

/** Returns the answers to the question that were recorded of any engine and version. */
export const recordedAnswers = (question: number): readonly string[] =>
  Object.values(versions)
    .flat()
    .flatMap(({ answers }) => answers[question] ?? [])

/** Whether an engine's own answers are known, of some version of it. */
export const isRecorded = ({ family }: EngineVersion): boolean => versions[family].length > 0

/**
 * Whether an engine that was not recorded speaks JavaScript as one that was. Of what recorded engines say of that one
 * answer in seven is equal at the most.
 */
export function answersAsAnother(answers: readonly EngineAnswer[]): boolean {
  const ofLanguage = answers.filter(({ id }) => aboutLanguage.has(id))
  return (['blink', 'gecko'] as const).some((family) => {
    const major = versions[family].at(-1)?.major ?? 0
    const equal = ofLanguage.filter(
      ({ id, answer }) => recordedAnswer({ family, major }, id) === answer,
    )
    return equal.length > ofLanguage.length / 2
  })
}

function answerOf({ family, major }: EngineVersion, question: number): string | undefined {
  const answers = versions[family].map((one) => ({
    major: one.major,
    answer: one.answers[question],
  }))
  const exact = answers.find((one) => one.major === major)
  if (exact) return exact.answer
  const before = answers.findLast((one) => one.major < major)
  const after = answers.find((one) => one.major > major)
  if (before && after) return before.answer === after.answer ? before.answer : undefined
  const [first, ...others] = answers
  const agree = others.every(({ answer }) => answer === first?.answer)
  return agree && !changing.has(question) ? first?.answer : undefined
}

const weekMs = 7 * 24 * 60 * 60 * 1000

/** Picks a different place for each two bytes. A place that was picked before gives way to the next. */
export function pickPlaces(bytes: Buffer, count: number): number[] {
  const picked = new Set<number>()
  for (let i = 0; i < bytes.length; i += 2) {
    let place = bytes.readUInt16BE(i) % count
    while (picked.has(place)) place = (place + 1) % count
    picked.add(place)
  }
  return [...picked]
}

/** Counts how often a place got another question by `now` (epoch milliseconds): places take turns, week by week. */
export function timesReplaced(
  place: number,
  { everyWeeks, now }: { everyWeeks: number; now: number },
): number {
  return Math.floor((Math.floor(now / weekMs) + place) / everyWeeks)
}
