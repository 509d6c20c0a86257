import type { Snapshot } from '../../../schemas/observations.ts'
import { collectAudio } from './collectors/audio.ts'
import { collectAutomation } from './collectors/automation.ts'
import { collectCanvas } from './collectors/canvas.ts'
import { collectEngine } from './collectors/engine.ts'
import { collectEnvironment } from './collectors/environment.ts'
import { collectFonts } from './collectors/fonts.ts'
import { collectMedia } from './collectors/media.ts'
import { collectNavigator } from './collectors/navigator.ts'
import { askFrame, askWorker } from './collectors/realms.ts'
import { collectCapabilities, collectStorage } from './collectors/storage.ts'
import { collectTamper } from './collectors/tamper.ts'
import { collectWebGl } from './collectors/webgl.ts'
import { collectWebGpu } from './collectors/webgpu.ts'
import { idle, within } from './support.ts'

/** What could be collected: a family that failed is left out, and reads as all null on the server. */
export type CollectedSnapshot = Partial<Snapshot>

/** Milliseconds that one family may take once its turn has come; all families wait side by side. */
const budgetMs = 1000

/** Looks at the browser and the device once. Never rejects. */
export async function collectSnapshot(): Promise<CollectedSnapshot> {
  const [local, navigator, environment, storage, capabilities, worker, audio, media, webgpu] =
    await Promise.all([
      collectLocal(),
      family(collectNavigator),
      family(collectEnvironment),
      family(collectStorage),
      family(collectCapabilities),
      family(askWorker),
      family(collectAudio),
      family(collectMedia),
      family(collectWebGpu),
    ])
  const { graphics, frame, automation, tamper, ...rest } = local
  return present({
    navigator,
    environment,
    storage,
    capabilities,
    audio,
    media,
    webgpu,
    worker: worker?.realm,
    iframe: frame?.realm,
    webgl: graphics?.webgl,
    automation: automation && {
      ...automation,
      webdriver_iframe: frame?.webdriver ?? null,
      webdriver_worker: worker?.webdriver ?? null,
    },
    tamper: tamper && { ...tamper, webgl_parameter_mismatch: graphics?.mismatch ?? null },
    ...rest,
  })
}

/** The families that compute without waiting for anything, one idle moment each. */
async function collectLocal() {
  return {
    canvas: await family(collectCanvas),
    fonts: await family(collectFonts),
    graphics: await family(collectWebGl),
    frame: await family(askFrame),
    automation: await family(collectAutomation),
    tamper: await family(collectTamper),
    engine: await family(collectEngine),
  }
}

async function family<T>(collect: () => Promise<T> | T): Promise<T | null> {
  await idle()
  return within(budgetMs, collect)
}

type Loose = { [K in keyof Snapshot]?: Snapshot[K] | null | undefined }

function present(parts: Loose): CollectedSnapshot {
  const found = Object.entries(parts).filter(([, part]) => part !== null && part !== undefined)
  return Object.fromEntries(found)
}
