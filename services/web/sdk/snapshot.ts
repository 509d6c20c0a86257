import type { Snapshot, Withheld } from '../../../schemas/observations.ts'
import type { StartOptions } from './api.ts'
import { collectAudio, collectMedia } from './collectors/audio.ts'
import { collectAutomation } from './collectors/automation.ts'
import { collectCanvas } from './collectors/canvas.ts'
import { collectEngine, collectEnvironment } from './collectors/environment.ts'
import { collectFonts } from './collectors/fonts.ts'
import { collectWebGl, collectWebGpu } from './collectors/graphics.ts'
import { collectNavigator } from './collectors/navigator.ts'
import { collectFrame, collectWorker, type Realms, realmDifferences } from './collectors/realms.ts'
import { collectCapabilities, collectStorage } from './collectors/storage.ts'
import { collectTamper, isTimezoneInconsistent } from './collectors/tamper.ts'
import { type AskBrowser, withTimeoutOrNull, yieldToPage } from './support.ts'

/** A snapshot without the families that failed. The server reads their members as null. */
type CollectedSnapshot = Partial<Snapshot>

export interface SnapshotOptions {
  mode: NonNullable<StartOptions['mode']>
  /** Timeout of each required part in milliseconds, so long that only a stalled machine misses it. */
  waitMs: number
  signal: AbortSignal
}

export interface Collection {
  /** Parts that were ready in time. */
  snapshot: CollectedSnapshot
  /** The complete snapshot; null if no part was late. */
  lateSnapshot: Promise<CollectedSnapshot> | null
}

// A part that takes longer is left out. Old engines on a very slow machine take half a minute.
const maxPartMs = 60_000
// Timeout of a call to a slow browser API, counted from when all sequential parts are done.
const askTimeoutMs = 800
// Font detection waits this long for the worker to preload fonts, which saves about 15 ms on the page's thread.
const workerFontsMs = 40
// Upper limit of `waitMs` for optional parts.
const maxOptionalMs = 2000

type Collect<T> = () => Promise<T | null> | T | null

/** A part of the snapshot: its value at its deadline (null if late), and its final value. */
interface Part<T> {
  isSettled(): boolean
  inTime: Promise<T | null>
  final: Promise<T | null>
}

/**
 * Computes the parts one after another, so that on a slow machine each gets its full time. Parts that wait for the
 * browser or the worker start first and run in the background.
 */
export async function collectSnapshot(options: SnapshotOptions): Promise<Collection> {
  await yieldToPage()
  const parts = startParts(options)
  const snapshot = await assemble(parts, options.mode, 'inTime')
  const isComplete = !snapshot.collection?.withheld.some(({ reason }) => reason === 'late')
  return { snapshot, lateSnapshot: isComplete ? null : assemble(parts, options.mode, 'final') }
}

function startParts({ mode, waitMs, signal }: SnapshotOptions) {
  const isFull = mode === 'full'
  const optionalMs = Math.min(waitMs, maxOptionalMs)
  let previousPart: Promise<unknown> = Promise.resolve()

  async function run<T>(collect: Collect<T>): Promise<T | null> {
    await yieldToPage()
    return signal.aborted ? null : collect()
  }
  const emptyPart = <T>() => withDeadline<T>(Promise.resolve(null), Promise.resolve(), 0)

  function inSequence<T>(collect: Collect<T>): Part<T> {
    const value = previousPart.then(() => run(collect)).catch(() => null)
    const part = withDeadline(value, previousPart, waitMs)
    previousPart = part.inTime
    return part
  }

  // Starts at once. The timeout counts from the end of the sequential parts.
  function inBackground<T>(collect: Collect<T>, ms = waitMs): Part<T> {
    const value = run(collect).catch(() => null)
    return withDeadline(value, sequentialDone, ms)
  }

  const ask: AskBrowser = (work) => {
    const result = Promise.resolve().then(work)
    return withDeadline(
      result.catch(() => null),
      sequentialDone,
      askTimeoutMs,
    ).inTime
  }
  const fullModeOnly = <T>(collect: Collect<T>) => (isFull ? inSequence(collect) : emptyPart<T>())
  let onSequentialDone = () => {}
  const sequentialDone = new Promise<void>((resolve) => {
    onSequentialDone = resolve
  })
  // The first date format loads locale data, and each font lookup asks the system. The worker does both first.
  const dates = createGate()
  const fonts = createGate()
  const datesRead = withTimeoutOrNull(optionalMs, () => dates.opened)
  const afterWorkerDates = <T>(collect: Collect<T>) =>
    inBackground(() => datesRead.then(() => run(collect)))
  const backgroundParts = {
    worker: inBackground(() =>
      collectWorker(mode, { ms: maxPartMs, onDatesRead: dates.open, onFonts: fonts.open }),
    ),
    audio: isFull ? inBackground(() => collectAudio(maxPartMs)) : emptyPart<Snapshot['audio']>(),
    media: isFull ? inBackground(collectMedia, optionalMs) : emptyPart<Snapshot['media']>(),
    webgpu: isFull ? inBackground(collectWebGpu, optionalMs) : emptyPart<Snapshot['webgpu']>(),
    storage: inBackground(() => collectStorage(ask)),
    capabilities: inBackground(() => collectCapabilities(ask)),
    navigator: inBackground(() => collectNavigator(ask)),
    environment: afterWorkerDates(() => collectEnvironment(ask)),
    frame: afterWorkerDates(() => collectFrame(mode)),
    timezoneMismatch: afterWorkerDates(isTimezoneInconsistent),
  }
  const sequentialParts = {
    engine: inSequence(collectEngine),
    automation: inSequence(collectAutomation),
    tamper: inSequence(collectTamper),
    canvas: fullModeOnly(collectCanvas),
    graphics: fullModeOnly(collectWebGl),
    fonts: fullModeOnly(async () => {
      await withTimeoutOrNull(workerFontsMs, () => fonts.opened)
      return run(collectFonts)
    }),
  }
  void previousPart.then(onSequentialDone)
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
  const within = (limit: number) => from.then(() => withTimeoutOrNull(limit, () => value))
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
  stage: 'inTime' | 'final',
): Promise<CollectedSnapshot> {
  const withheld: Withheld[] = []
  const isFull = mode === 'full'

  // Returns a part that the browser or its user may block, and records the reason if it is missing.
  async function readPart<T>(
    group: Withheld['group'],
    part: Part<T>,
    { has, isSupported = true }: { has: (value: T) => boolean; isSupported?: boolean },
  ): Promise<T | null> {
    const value = await part[stage]
    if (value !== null && has(value)) return value
    const isLate = value === null && !part.isSettled()
    withheld.push({ group, reason: isLate ? 'late' : isSupported ? 'blocked' : 'unsupported' })
    return value
  }
  const readInFullMode: typeof readPart = async (group, part, options) =>
    isFull ? readPart(group, part, options) : null

  const worker = await readPart('worker', parts.worker, {
    has: ({ realm }) => realm.user_agent !== null,
  })
  const frame = await readPart('iframe', parts.frame, {
    has: ({ realm }) => realm.user_agent !== null,
  })
  const graphics = await readInFullMode('webgl', parts.graphics, {
    has: ({ webgl }) => webgl.renderer !== null,
    isSupported: 'WebGLRenderingContext' in window,
  })
  const [automation, tamper] = [await parts.automation[stage], await parts.tamper[stage]]
  return withoutMissing({
    navigator: await parts.navigator[stage],
    environment: await parts.environment[stage],
    storage: await parts.storage[stage],
    capabilities: await parts.capabilities[stage],
    canvas: await readInFullMode('canvas', parts.canvas, { has: ({ hash }) => hash !== null }),
    fonts: await readInFullMode('fonts', parts.fonts, {
      has: ({ detected_count }) => detected_count !== null,
    }),
    engine: await parts.engine[stage],
    audio: await readInFullMode('audio', parts.audio, {
      has: ({ hash }) => hash !== null,
      isSupported: 'OfflineAudioContext' in window,
    }),
    media: await parts.media[stage],
    webgpu: await parts.webgpu[stage],
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
      timezone_mismatch: await parts.timezoneMismatch[stage],
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
