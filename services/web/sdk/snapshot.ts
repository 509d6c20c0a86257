import type { Snapshot, Withheld } from '../../../schemas/observations.ts'
import type { StartOptions } from './api.ts'
import { collectAudio, collectMedia } from './collectors/audio.ts'
import { collectAutomation } from './collectors/automation.ts'
import { collectCanvas } from './collectors/canvas.ts'
import { collectEngine, collectEnvironment } from './collectors/environment.ts'
import { collectFonts } from './collectors/fonts.ts'
import { collectWebGl, collectWebGpu } from './collectors/graphics.ts'
import { collectNavigator } from './collectors/navigator.ts'
import { askFrame, askWorker, type RealmAnswers, realmDifferences } from './collectors/realms.ts'
import { collectCapabilities, collectStorage } from './collectors/storage.ts'
import { collectTamper } from './collectors/tamper.ts'
import { idle, withinBudget } from './support.ts'

/** What could be collected: a family that failed is left out, and reads as all null on the server. */
export type CollectedSnapshot = Partial<Snapshot>

// Milliseconds that one family may take once its turn has come. All wait side by side for idle moments, so that
// all is there after this and the longest wait for one, and between two of them the page can work.
const budgetMs = 2000

export interface SnapshotOptions {
  mode: NonNullable<StartOptions['mode']>
  /** For what the server holds against a page that does not send it: only a machine that stands still is late. */
  waitMs: number
  signal: AbortSignal
}

export async function collectSnapshot({ mode, waitMs, signal }: SnapshotOptions): Promise<CollectedSnapshot> {
  const isFull = mode === 'full'
  const withheld: Withheld[] = []

  async function family<T>(collect: () => Promise<T> | T, ms = waitMs): Promise<T | null> {
    await idle()
    return signal.aborted ? null : withinBudget(ms, collect)
  }

  // What the browser or its user may refuse. Where it is not there, the server is told why.
  async function owed<T>(group: Withheld['group'], { collect, has, api = true }: Owed<T>): Promise<T | null> {
    const begunAt = performance.now()
    const value = await family(collect)
    if (value !== null && has(value)) return value
    // What a part waits for itself ends a little earlier.
    const isLate = performance.now() - begunAt > waitMs * 0.9
    withheld.push({ group, reason: isLate ? 'late' : api ? 'blocked' : 'unsupported' })
    return value
  }

  // What is drawn, played, measured or counted to tell machines apart.
  const surface = <T>(group: Withheld['group'], part: Owed<T>) => (isFull ? owed(group, part) : null)
  const extra = <T>(collect: () => Promise<T> | T) => (isFull ? family(collect, budgetMs) : null)
  const ownMs = waitMs * 0.95

  // Those that wait for the browser are asked first, and answer while the others compute.
  const started = {
    worker: owed('worker', {
      collect: () => askWorker(mode, ownMs),
      has: ({ realm }) => realm.user_agent !== null,
    }),
    audio: surface('audio', {
      collect: () => collectAudio(ownMs),
      has: ({ hash }) => hash !== null,
      api: 'OfflineAudioContext' in window,
    }),
    media: extra(collectMedia),
    webgpu: extra(collectWebGpu),
    navigator: family(collectNavigator),
    storage: family(collectStorage),
    automation: family(collectAutomation),
    tamper: family(collectTamper),
    engine: family(collectEngine),
    environment: family(collectEnvironment),
    capabilities: family(collectCapabilities),
    frame: owed('iframe', { collect: () => askFrame(mode), has: ({ realm }) => realm.user_agent !== null }),
    canvas: surface('canvas', { collect: collectCanvas, has: ({ hash }) => hash !== null }),
    fonts: surface('fonts', {
      collect: collectFonts,
      has: ({ detected_count }) => detected_count !== null,
    }),
    graphics: surface('webgl', {
      collect: collectWebGl,
      has: ({ webgl }) => webgl.renderer !== null,
      api: 'WebGLRenderingContext' in window,
    }),
  }
  const [worker, frame, graphics] = await Promise.all([started.worker, started.frame, started.graphics])
  const [automation, tamper] = await Promise.all([started.automation, started.tamper])
  return present({
    navigator: await started.navigator,
    environment: await started.environment,
    storage: await started.storage,
    capabilities: await started.capabilities,
    canvas: await started.canvas,
    fonts: await started.fonts,
    engine: await started.engine,
    audio: await started.audio,
    media: await started.media,
    webgpu: await started.webgpu,
    worker: worker?.realm,
    iframe: frame?.realm,
    webgl: graphics?.webgl,
    automation: automation && withRealms(automation, { frame, worker }),
    tamper: tamper && {
      ...tamper,
      webgl_parameter_mismatch: graphics?.mismatch ?? null,
      realm_differences: realmDifferences({ frame, worker }),
    },
    // Last, because each part above may add to it.
    collection: { mode, withheld },
  })
}

interface Owed<T> {
  collect: () => Promise<T | null> | T | null
  has: (value: T) => boolean
  // Whether the browser has the interface at all.
  api?: boolean
}

interface Realms {
  frame: RealmAnswers | null
  worker: RealmAnswers | null
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

type Loose = { [K in keyof Snapshot]?: Snapshot[K] | null | undefined }

function present(parts: Loose): CollectedSnapshot {
  const found = Object.entries(parts).filter(([, part]) => part !== null && part !== undefined)
  return Object.fromEntries(found)
}
