import type { Snapshot, Withheld } from '../../../schemas/observations.ts'
import type { StartOptions } from './api.ts'
import { collectAudio, collectMedia } from './collectors/audio.ts'
import { collectAutomation } from './collectors/automation.ts'
import { collectCanvas } from './collectors/canvas.ts'
import { collectEngine, collectEnvironment } from './collectors/environment.ts'
import { collectFonts } from './collectors/fonts.ts'
import { collectWebGl, collectWebGpu } from './collectors/graphics.ts'
import { collectNavigator } from './collectors/navigator.ts'
import { askFrame, askWorker, type Realms, realmDifferences } from './collectors/realms.ts'
import { collectCapabilities, collectStorage } from './collectors/storage.ts'
import { collectTamper, timezoneContradicts } from './collectors/tamper.ts'
import { type AskBrowser, withinBudget, yieldToPage } from './support.ts'

/** Snapshot without the families that failed, which the server reads as all null. */
type CollectedSnapshot = Partial<Snapshot>

export interface SnapshotOptions {
  mode: NonNullable<StartOptions['mode']>
  /** Milliseconds for each required part, so long that only a stalled machine is late. */
  waitMs: number
  signal: AbortSignal
}

export interface Collection {
  /** Parts that were ready in time. */
  snapshot: CollectedSnapshot
  /** The complete snapshot, if any part was late. */
  whole: Promise<CollectedSnapshot> | null
}

// After this, a part is given up. Old engines on a machine 20 times slower take half a minute for a part.
const maxPartMs = 60_000
// Timeout of a browser API call, counted from when all sequential parts are done.
const askTimeoutMs = 800
// Time that font detection waits for the worker to preload fonts, which saves the page's thread 15 ms.
const workerFontsMs = 40
// Upper limit of `waitMs` for optional parts.
const maxOptionalMs = 2000

type Collect<T> = () => Promise<T | null> | T | null

/** A part of the snapshot: its value at its deadline, and its final value. */
interface Part<T> {
  isSettled(): boolean
  inTime: Promise<T | null>
  final: Promise<T | null>
}

/**
 * Computes the parts one after another, so that on a slow machine each gets its full time. Parts that wait for the
 * browser or the worker start first and finish in the background.
 */
export async function collectSnapshot(options: SnapshotOptions): Promise<Collection> {
  await yieldToPage()
  const parts = startParts(options)
  const snapshot = await assemble(parts, options.mode, 'inTime')
  const isWhole = !snapshot.collection?.withheld.some(({ reason }) => reason === 'late')
  return { snapshot, whole: isWhole ? null : assemble(parts, options.mode, 'final') }
}

function startParts({ mode, waitMs, signal }: SnapshotOptions) {
  const isFull = mode === 'full'
  const optionalMs = Math.min(waitMs, maxOptionalMs)
  let previousPart: Promise<unknown> = Promise.resolve()

  async function run<T>(collect: Collect<T>): Promise<T | null> {
    await yieldToPage()
    return signal.aborted ? null : collect()
  }
  const absent = <T>() => withDeadline<T>(Promise.resolve(null), Promise.resolve(), 0)

  function inSequence<T>(collect: Collect<T>): Part<T> {
    const value = previousPart.then(() => run(collect)).catch(() => null)
    const part = withDeadline(value, previousPart, waitMs)
    previousPart = part.inTime
    return part
  }

  // Starts at once; its time counts from the end of the sequential parts.
  function inBackground<T>(collect: Collect<T>, ms = waitMs): Part<T> {
    const value = run(collect).catch(() => null)
    return withDeadline(value, computed, ms)
  }

  const ask: AskBrowser = (work) => {
    const answer = Promise.resolve().then(work)
    return withDeadline(
      answer.catch(() => null),
      computed,
      askTimeoutMs,
    ).inTime
  }
  const fullModeOnly = <T>(collect: Collect<T>) => (isFull ? inSequence(collect) : absent<T>())
  let onComputed = () => {}
  const computed = new Promise<void>((resolve) => {
    onComputed = resolve
  })
  // The first date format loads locale data, and each font lookup asks the system. Let the worker do both first, which
  // costs this thread nothing.
  const dates = createGate()
  const fonts = createGate()
  const datesRead = withinBudget(optionalMs, () => dates.opened)
  const afterWorkerDates = <T>(collect: Collect<T>) =>
    inBackground(() => datesRead.then(() => run(collect)))
  const backgroundParts = {
    worker: inBackground(() =>
      askWorker(mode, { ms: maxPartMs, onAnswer: dates.open, onFonts: fonts.open }),
    ),
    audio: isFull ? inBackground(() => collectAudio(maxPartMs)) : absent<Snapshot['audio']>(),
    media: isFull ? inBackground(collectMedia, optionalMs) : absent<Snapshot['media']>(),
    webgpu: isFull ? inBackground(collectWebGpu, optionalMs) : absent<Snapshot['webgpu']>(),
    storage: inBackground(() => collectStorage(ask)),
    capabilities: inBackground(() => collectCapabilities(ask)),
    navigator: inBackground(() => collectNavigator(ask)),
    environment: afterWorkerDates(() => collectEnvironment(ask)),
    frame: afterWorkerDates(() => askFrame(mode)),
    timezoneMismatch: afterWorkerDates(timezoneContradicts),
  }
  const sequentialParts = {
    engine: inSequence(collectEngine),
    automation: inSequence(collectAutomation),
    tamper: inSequence(collectTamper),
    canvas: fullModeOnly(collectCanvas),
    graphics: fullModeOnly(collectWebGl),
    fonts: fullModeOnly(async () => {
      await withinBudget(workerFontsMs, () => fonts.opened)
      return run(collectFonts)
    }),
  }
  void previousPart.then(onComputed)
  return { ...backgroundParts, ...sequentialParts }
}

function createGate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

function withDeadline<T>(value: Promise<T | null>, from: Promise<unknown>, ms: number): Part<T> {
  const within = (limit: number) => from.then(() => withinBudget(limit, () => value))
  let settled = false
  void value.then(() => {
    settled = true
  })
  return {
    isSettled: () => settled,
    inTime: within(ms),
    // Lazy, because it is rarely needed and starts a timer.
    get final() {
      return within(maxPartMs)
    },
  }
}

async function assemble(
  parts: ReturnType<typeof startParts>,
  mode: SnapshotOptions['mode'],
  which: 'inTime' | 'final',
): Promise<CollectedSnapshot> {
  const withheld: Withheld[] = []
  const isFull = mode === 'full'

  // Returns a part that the browser or its user may refuse, and records the reason if it is missing. `api`: true if the
  // browser has the interface.
  async function requirePart<T>(
    group: Withheld['group'],
    part: Part<T>,
    { has, api = true }: { has: (value: T) => boolean; api?: boolean },
  ): Promise<T | null> {
    const value = await part[which]
    if (value !== null && has(value)) return value
    const isLate = value === null && !part.isSettled()
    withheld.push({ group, reason: isLate ? 'late' : api ? 'blocked' : 'unsupported' })
    return value
  }
  const fullModeOnly: typeof requirePart = async (group, part, options) =>
    isFull ? requirePart(group, part, options) : null

  const worker = await requirePart('worker', parts.worker, {
    has: ({ realm }) => realm.user_agent !== null,
  })
  const frame = await requirePart('iframe', parts.frame, {
    has: ({ realm }) => realm.user_agent !== null,
  })
  const graphics = await fullModeOnly('webgl', parts.graphics, {
    has: ({ webgl }) => webgl.renderer !== null,
    api: 'WebGLRenderingContext' in window,
  })
  const [automation, tamper] = [await parts.automation[which], await parts.tamper[which]]
  return withoutMissing({
    navigator: await parts.navigator[which],
    environment: await parts.environment[which],
    storage: await parts.storage[which],
    capabilities: await parts.capabilities[which],
    canvas: await fullModeOnly('canvas', parts.canvas, { has: ({ hash }) => hash !== null }),
    fonts: await fullModeOnly('fonts', parts.fonts, {
      has: ({ detected_count }) => detected_count !== null,
    }),
    engine: await parts.engine[which],
    audio: await fullModeOnly('audio', parts.audio, {
      has: ({ hash }) => hash !== null,
      api: 'OfflineAudioContext' in window,
    }),
    media: await parts.media[which],
    webgpu: await parts.webgpu[which],
    worker: worker?.realm,
    iframe: frame?.realm,
    webgl: graphics?.webgl,
    automation: automation && withRealms(automation, { frame, worker }),
    tamper: tamper && {
      ...tamper,
      foreign_primitives: [
        ...tamper.foreign_primitives,
        ...(worker?.foreign.map((name) => `worker.navigator.${name}`) ?? []),
      ],
      timezone_mismatch: await parts.timezoneMismatch[which],
      webgl_parameter_mismatch: graphics?.mismatch ?? null,
      realm_differences: realmDifferences({ frame, worker }),
    },
    // Last, because the parts above add to `withheld`.
    collection: { mode, withheld },
  })
}

function withRealms(
  automation: Awaited<ReturnType<typeof collectAutomation>>,
  { frame, worker }: Realms,
): Snapshot['automation'] {
  const readers = [...automation.console_readers, ...(worker?.readers ?? [])]
  return {
    ...automation,
    webdriver_iframe: frame?.webdriver ?? null,
    webdriver_worker: worker?.webdriver ?? null,
    console_readers: readers,
    cdp_runtime: readers.length > 0,
  }
}

function withoutMissing(
  parts: { [K in keyof Snapshot]?: Snapshot[K] | null | undefined },
): CollectedSnapshot {
  const entries = Object.entries(parts).filter(([, part]) => part !== null && part !== undefined)
  return Object.fromEntries(entries)
}
