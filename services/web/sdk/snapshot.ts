import type { Snapshot } from '../../../schemas/observations.ts'
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
// Of what the server holds against a page that does not send it: only a machine that stands still is late.
const owedMs = 5000

export interface SnapshotOptions {
  mode: NonNullable<StartOptions['mode']>
  signal: AbortSignal
}

export async function collectSnapshot({ mode, signal }: SnapshotOptions): Promise<CollectedSnapshot> {
  const isFull = mode === 'full'

  async function family<T>(collect: () => Promise<T> | T, ms = budgetMs): Promise<T | null> {
    await idle()
    return signal.aborted ? null : withinBudget(ms, collect)
  }

  // What is drawn, played, measured or counted to tell machines apart.
  const surface = <T>(collect: () => Promise<T> | T, ms?: number) => (isFull ? family(collect, ms) : null)

  // Those that wait for the browser are asked first, and answer while the others compute.
  const started = {
    worker: family(() => askWorker(mode)),
    audio: surface(collectAudio),
    media: surface(collectMedia),
    webgpu: surface(collectWebGpu),
    navigator: family(collectNavigator, owedMs),
    storage: family(collectStorage, owedMs),
    automation: family(collectAutomation, owedMs),
    tamper: family(collectTamper, owedMs),
    engine: family(collectEngine, owedMs),
    environment: family(collectEnvironment, owedMs),
    capabilities: family(collectCapabilities, owedMs),
    frame: family(() => askFrame(mode)),
    canvas: surface(collectCanvas, owedMs),
    fonts: surface(collectFonts),
    graphics: surface(collectWebGl),
  }
  const [worker, frame, graphics] = await Promise.all([started.worker, started.frame, started.graphics])
  const [automation, tamper] = await Promise.all([started.automation, started.tamper])
  return present({
    collection: { mode },
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
  })
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
