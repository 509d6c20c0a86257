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

/** What could be collected: a family that failed is left out, and reads as all null on the server. */
type CollectedSnapshot = Partial<Snapshot>

export interface SnapshotOptions {
  mode: NonNullable<StartOptions['mode']>
  /** For each part that the server expects of every page, so that only a machine that stands still is late. */
  waitMs: number
  signal: AbortSignal
}

export interface Collection {
  /** What was there in time. */
  snapshot: CollectedSnapshot
  /** All of it, where anything was late. */
  whole: Promise<CollectedSnapshot> | null
}

// A part that has not answered by then never will. Old engines on a machine of a twentieth of the speed take half a minute
// for one part.
const longestMs = 60_000
// For one answer of the browser, once no part is computed any more.
const askedMs = 800
// For the worker to look for the fonts, once nothing else is left to compute. Without it that takes 15 ms more.
const fontsMs = 40
// For parts that no page has to send.
const mostOptionalMs = 2000

type Collect<T> = () => Promise<T | null> | T | null

/** A part of the snapshot: what it is once its time is over, and what it comes to in the end. */
interface Part<T> {
  isSettled(): boolean
  inTime: Promise<T | null>
  final: Promise<T | null>
}

/**
 * Computes the parts one after another, so that on a slow machine each has all of its time once its turn has come. Those
 * that wait for the browser or the worker begin first, and answer meanwhile.
 */
export async function collectSnapshot(options: SnapshotOptions): Promise<Collection> {
  await yieldToPage()
  const parts = startParts(options)
  const snapshot = await assembled(parts, options.mode, 'inTime')
  const isWhole = !snapshot.collection?.withheld.some(({ reason }) => reason === 'late')
  return { snapshot, whole: isWhole ? null : assembled(parts, options.mode, 'final') }
}

function startParts({ mode, waitMs, signal }: SnapshotOptions) {
  const isFull = mode === 'full'
  const optionalMs = Math.min(waitMs, mostOptionalMs)
  let turn: Promise<unknown> = Promise.resolve()

  async function run<T>(collect: Collect<T>): Promise<T | null> {
    await yieldToPage()
    return signal.aborted ? null : collect()
  }
  const nothing = <T>() => limited<T>(Promise.resolve(null), Promise.resolve(), 0)

  function inTurn<T>(collect: Collect<T>): Part<T> {
    const own = turn.then(() => run(collect)).catch(() => null)
    const part = limited(own, turn, waitMs)
    turn = part.inTime
    return part
  }

  // Begins at once, and its time is counted from when all those in turn were computed.
  function meanwhile<T>(collect: Collect<T>, ms = waitMs): Part<T> {
    const own = run(collect).catch(() => null)
    return limited(own, computed, ms)
  }

  const ask: AskBrowser = (work) => {
    const answer = Promise.resolve().then(work)
    return limited(
      answer.catch(() => null),
      computed,
      askedMs,
    ).inTime
  }
  const surface = <T>(collect: Collect<T>) => (isFull ? inTurn(collect) : nothing<T>())
  let onComputed = () => {}
  const computed = new Promise<void>((resolve) => {
    onComputed = resolve
  })
  // The first date format reads the engine's tables, and each font is asked of the system. Once the worker has done that,
  // it costs this thread nothing.
  const dates = createGate()
  const fonts = createGate()
  const datesRead = withinBudget(optionalMs, () => dates.opened)
  const whenWarm = <T>(collect: Collect<T>) => meanwhile(() => datesRead.then(() => run(collect)))
  const waiting = {
    worker: meanwhile(() =>
      askWorker(mode, { ms: longestMs, onAnswer: dates.open, onFonts: fonts.open }),
    ),
    audio: isFull ? meanwhile(() => collectAudio(longestMs)) : nothing<Snapshot['audio']>(),
    media: isFull ? meanwhile(collectMedia, optionalMs) : nothing<Snapshot['media']>(),
    webgpu: isFull ? meanwhile(collectWebGpu, optionalMs) : nothing<Snapshot['webgpu']>(),
    storage: meanwhile(() => collectStorage(ask)),
    capabilities: meanwhile(() => collectCapabilities(ask)),
    navigator: meanwhile(() => collectNavigator(ask)),
    environment: whenWarm(() => collectEnvironment(ask)),
    frame: whenWarm(() => askFrame(mode)),
    timezoneMismatch: whenWarm(timezoneContradicts),
  }
  const computing = {
    engine: inTurn(collectEngine),
    automation: inTurn(collectAutomation),
    tamper: inTurn(collectTamper),
    canvas: surface(collectCanvas),
    graphics: surface(collectWebGl),
    fonts: surface(async () => {
      await withinBudget(fontsMs, () => fonts.opened)
      return run(collectFonts)
    }),
  }
  void turn.then(onComputed)
  return { ...waiting, ...computing }
}

function createGate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

function limited<T>(own: Promise<T | null>, from: Promise<unknown>, ms: number): Part<T> {
  const within = (limit: number) => from.then(() => withinBudget(limit, () => own))
  let settled = false
  void own.then(() => {
    settled = true
  })
  return {
    isSettled: () => settled,
    inTime: within(ms),
    // Rarely asked for, and a timer each.
    get final() {
      return within(longestMs)
    },
  }
}

async function assembled(
  parts: ReturnType<typeof startParts>,
  mode: SnapshotOptions['mode'],
  which: 'inTime' | 'final',
): Promise<CollectedSnapshot> {
  const withheld: Withheld[] = []
  const isFull = mode === 'full'

  // A part that the browser or its user may refuse. Where it is missing, the snapshot says why. `api`: whether the
  // browser has the interface at all.
  async function expected<T>(
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
  const surface: typeof expected = async (group, part, options) =>
    isFull ? expected(group, part, options) : null

  const worker = await expected('worker', parts.worker, {
    has: ({ realm }) => realm.user_agent !== null,
  })
  const frame = await expected('iframe', parts.frame, {
    has: ({ realm }) => realm.user_agent !== null,
  })
  const graphics = await surface('webgl', parts.graphics, {
    has: ({ webgl }) => webgl.renderer !== null,
    api: 'WebGLRenderingContext' in window,
  })
  const [automation, tamper] = [await parts.automation[which], await parts.tamper[which]]
  return present({
    navigator: await parts.navigator[which],
    environment: await parts.environment[which],
    storage: await parts.storage[which],
    capabilities: await parts.capabilities[which],
    canvas: await surface('canvas', parts.canvas, { has: ({ hash }) => hash !== null }),
    fonts: await surface('fonts', parts.fonts, {
      has: ({ detected_count }) => detected_count !== null,
    }),
    engine: await parts.engine[which],
    audio: await surface('audio', parts.audio, {
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
    // Last, because each part above may add to it.
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

function present(
  parts: { [K in keyof Snapshot]?: Snapshot[K] | null | undefined },
): CollectedSnapshot {
  const found = Object.entries(parts).filter(([, part]) => part !== null && part !== undefined)
  return Object.fromEntries(found)
}
