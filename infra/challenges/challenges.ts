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
 * Returns the repository's questions for a document, derived from its challenge. Includes every kind, so that neither a
 * bare JavaScript engine nor another version of the browser can answer them all.
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

function pick(questions: readonly EngineQuestion[], bytes: Buffer): EngineQuestion[] {
  return pickSlots(bytes, questions.length).flatMap((slot) => questions[slot] ?? [])
}

const drawingCount = 64

/** Returns the seed of one of 64 drawings, of which one is replaced each week. Answers are learned per drawing. */
export function canvasSeedOf(challenge: string, now: number): string {
  const slot = hash('sha256', `canvas ${challenge}`, 'buffer').readUInt16BE(0) % drawingCount
  return `${slot}.${replacementCount(slot, { everyWeeks: drawingCount, now })}`
}

const width = 120
const height = 40

/**
 * Returns a drawing of curves, sub-pixel arcs and soft edges, which graphics stacks round differently. Half have text.
 */
export function canvasChallengeOf(seed: string): CanvasChallenge {
  const bytes = hash('sha512', `drawing ${seed}`, 'buffer')
  const at = (index: number, range: number) =>
    Math.round(((bytes[index] ?? 0) / 256) * range * 100) / 100
  const color = (index: number) => `#${bytes.toString('hex', index, index + 3)}`
  const points = Array.from({ length: 8 }, (_, i) => at(i, i % 2 === 0 ? width : height))
  const angles = { start: at(12, 6), end: at(13, 6) }
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
      ...angles,
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

/** `webkit` is Apple's. WebKitGTK is a family of its own, because its answers differ from Safari's. */
export const engineFamilies = ['blink', 'gecko', 'webkit', 'webkitgtk'] as const
export type EngineFamily = (typeof engineFamilies)[number]

export interface EngineVersion {
  family: EngineFamily
  major: number
}

/** Returns the key by which answers are learned and recorded, such as `blink 156`. */
export const engineName = ({ family, major }: EngineVersion): string => `${family} ${major}`

/**
 * Returns the engine that a user agent string claims. Every browser on iOS is WebKit, with the iOS version unless it
 * names its own. On other systems, the web view of an app names no version and gets 0.
 */
export function engineVersionOf(userAgent: string): EngineVersion | null {
  const major = (pattern: RegExp) => Number(pattern.exec(userAgent)?.[1] ?? Number.NaN)
  const claim = (family: EngineFamily, version: number) =>
    Number.isNaN(version) ? null : { family, major: version }
  if (/\b(iPhone|iPad|iPod)\b/.test(userAgent))
    return claim('webkit', major(/Version\/(\d{1,4})/)) ?? claim('webkit', major(/ OS (\d{1,4})_/))
  const webKit = isLinux.test(userAgent) ? 'webkitgtk' : 'webkit'
  return (
    claim('gecko', major(/\bFirefox\/(\d{1,4})/)) ??
    claim('blink', major(/Chrom(?:e|ium)\/(\d{1,4})/)) ??
    claim(webKit, major(/Version\/(\d{1,4})[\d.]* .*Safari\//)) ??
    (/\bAppleWebKit\//.test(userAgent) ? { family: webKit, major: 0 } : null)
  )
}

const isLinux = /\b(X11|Linux)\b/

interface RecordedVersion {
  major: number
  answers: Record<string, string>
}

// Answers recorded from real browsers (see docs/reports/detection.md), by version, oldest first.
const versions: Record<EngineFamily, RecordedVersion[]> = {
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
for (const list of Object.values(versions)) list.sort((a, b) => a.major - b.major)

const versionQuestions = new Set(questionBank.version.map(({ id }) => id))
const languageQuestions = new Set(questionBank.language.map(({ id }) => id))

/**
 * Returns the answer of an engine version; undefined if it is unknown. A version that was not recorded gets the answer
 * on which its neighbors agree. Before the oldest and after the newest recording, it gets the answer that all
 * recordings share, except for questions whose answers change between versions.
 */
export function recordedAnswer(version: EngineVersion, question: number): string | undefined {
  const name = engineName(version)
  const cached = answersByEngine.get(name)
  if (cached) return cached.get(question)
  const answers = new Map(
    Object.values(questionBank)
      .flat()
      .map(({ id }) => [id, answerOf(version, id)]),
  )
  answersByEngine.set(name, answers)
  return answers.get(question)
}

const answersByEngine = createLru<string, Map<number, string | undefined>>(200)

/** Returns all recorded answers to the question, of every engine and version. */
export const recordedAnswers = (question: number): readonly string[] =>
  Object.values(versions)
    .flat()
    .flatMap(({ answers }) => answers[question] ?? [])

/** Returns true if answers of any version of the engine family were recorded. */
export const isRecorded = ({ family }: EngineVersion): boolean => versions[family].length > 0

/**
 * Returns true if most answers about JavaScript equal those of Blink or Gecko. For engines that were not recorded:
 * recorded engines have at most one in seven of these answers in common.
 */
export function matchesAnotherEngine(answers: readonly EngineAnswer[]): boolean {
  const languageAnswers = answers.filter(({ id }) => languageQuestions.has(id))
  return (['blink', 'gecko'] as const).some((family) => {
    const major = versions[family].at(-1)?.major ?? 0
    const equal = languageAnswers.filter(
      ({ id, answer }) => recordedAnswer({ family, major }, id) === answer,
    )
    return equal.length > languageAnswers.length / 2
  })
}

function answerOf({ family, major }: EngineVersion, question: number): string | undefined {
  const answers = versions[family].map((version) => ({
    major: version.major,
    answer: version.answers[question],
  }))
  const exact = answers.find((version) => version.major === major)
  if (exact) return exact.answer
  const before = answers.findLast((version) => version.major < major)
  const after = answers.find((version) => version.major > major)
  if (before && after) return before.answer === after.answer ? before.answer : undefined
  const [first, ...others] = answers
  const agree = others.every(({ answer }) => answer === first?.answer)
  return agree && !versionQuestions.has(question) ? first?.answer : undefined
}

const weekMs = 7 * 24 * 60 * 60 * 1000

/** Picks one slot per two bytes, all different: if a slot is taken, it picks the next free one. */
export function pickSlots(bytes: Buffer, count: number): number[] {
  const picked = new Set<number>()
  for (let i = 0; i < bytes.length; i += 2) {
    let slot = bytes.readUInt16BE(i) % count
    while (picked.has(slot)) slot = (slot + 1) % count
    picked.add(slot)
  }
  return [...picked]
}

/**
 * Returns the number of times that a slot was replaced by `now` (epoch milliseconds). Slots are replaced in turn, week
 * by week.
 */
export function replacementCount(
  slot: number,
  { everyWeeks, now }: { everyWeeks: number; now: number },
): number {
  return Math.floor((Math.floor(now / weekMs) + slot) / everyWeeks)
}
