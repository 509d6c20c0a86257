import { answersOf } from '../../../../bench/recorded-answers.ts'
import { questionsOf } from '../../../../infra/challenges/challenges.ts'
import { answerMac } from '../../../../infra/wire/collect/client-crypto.ts'
import { type Snapshot, snapshotSchema } from '../../../../schemas/observations.ts'
import { addAutomationTraces } from '../../../../services/cli/simulate/generate/bots.ts'
import { type DeviceFamily, families } from '../../../../services/cli/simulate/generate/families.ts'
import { clientHints } from '../../../../services/cli/simulate/generate/headers.ts'
import { createSeededRandom } from '../../../../services/cli/simulate/generate/random.ts'
import { deviceSnapshot } from '../../../../services/cli/simulate/generate/snapshot.ts'
import { rightAnswers } from './taught.ts'

/** Named cases of the generator of `tidegate simulate`: a family with fewer choices, and what only the case has. */
type Parts = {
  [K in keyof Snapshot]?: Partial<NonNullable<Snapshot[K]>> | Extract<Snapshot[K], null>
}

export interface Client {
  snapshot: Parts
  clientHints?: Record<string, string>
}

/** What every document of a test hands out. */
export const answers = { challenge: 'challenge-1', timing_nonce: 'timing-1' }

export const agentOf = ({ snapshot }: Client): string => snapshot.navigator?.user_agent ?? ''

/** How the browser of a user agent answers that document, where `taught` knows the answers. */
export function proofsOf(
  userAgent: string,
  change: Partial<Snapshot['proofs']> = {},
): Snapshot['proofs'] {
  const { challenge, timing_nonce: timingNonce } = answers
  const asked = { challenge, timingNonce, engineQuestions: questionsOf(challenge) }
  const recorded = answersOf(userAgent, asked)
  const engine = [...recorded.engine_answers, ...rightAnswers(challenge)]
  const answer_mac = answerMac(asked, { canvas: recorded.canvas_challenge_hash, engine })
  return {
    challenge: null,
    timing_nonce: null,
    ...recorded,
    engine_answers: engine,
    answer_mac,
    ...change,
  }
}

const germany = {
  languages: ['de-DE', 'de', 'en'],
  timezone: 'Europe/Berlin',
  timezone_offset_min: -60,
}
const inUtc = { languages: ['en-US', 'en'], timezone: 'UTC', timezone_offset_min: 0 }

export const desktopChrome = clientOf(generated('chrome-macos', { versions: [140] }), {
  navigator: { ua_data_platform_version: '15.6.0' },
})

export const chromebook = clientOf(
  generated('chrome-linux', {
    userAgent:
      'Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{v}.0.0.0 Safari/537.36',
    versions: [140],
    hintsPlatform: 'Chrome OS',
    gpus: [
      ['Google Inc. (Intel)', 'ANGLE (Intel, Mesa Intel(R) UHD Graphics (JSL), OpenGL ES 3.2)'],
    ],
  }),
  { navigator: { ua_data_platform_version: '16371.0.0' } },
)

export const desktopSafari = clientOf(generated('safari-macos', { versions: [18] }))

const sanitizedGpu = 'ANGLE (NVIDIA, NVIDIA GeForce GTX 980 Direct3D11 vs_5_0 ps_5_0), or similar'
const firefox = { versions: [140], gpus: [['Google Inc. (NVIDIA)', sanitizedGpu]] } as const

/** Firefox as it is installed: the clock in steps of 1 ms, no client hints, no device memory. */
export const desktopFirefox = clientOf(generated('firefox-windows', firefox))

/** Firefox with privacy.resistFingerprinting: UTC, noise, coarse timers, no WebGL details. */
export const resistingFirefox: Client = {
  snapshot: {
    ...clientOf(
      generated('firefox-windows', { ...firefox, screens: [[1400, 900, 2]], locales: [inUtc] }),
      {
        navigator: { hardware_concurrency: 2 },
        worker: { hardware_concurrency: 2, webgl_renderer: null },
        iframe: { hardware_concurrency: 2 },
        tamper: { timer_precision_reduced: true },
      },
    ).snapshot,
    canvas: { hash: 'noise-8842', noise_detected: true },
    webgl: { vendor: 'Mozilla', renderer: 'Mozilla' },
    audio: { hash: 35.74, voice_count: 0, noise_detected: false },
    fonts: { detected_count: 2, tested_count: 60 },
    media: { device_count: 0 },
  },
}

/** The Mac of desktop Chrome in Brave, which patches and adds noise by itself. */
export const brave = withParts(desktopChrome, {
  tamper: { brave: true, patched_functions: ['HTMLCanvasElement.toDataURL', 'navigator.plugins'] },
  canvas: { noise_detected: true },
  audio: { noise_detected: true },
  worker: { hardware_concurrency: 5 },
})

export const iphoneSafari = clientOf(generated('safari-iphone', { versions: [18] }))

export const androidChrome = clientOf(generated('chrome-android', { versions: [140] }))

export const androidWebView = clientOf(
  generated('chrome-android', {
    userAgent:
      'Mozilla/5.0 (Linux; Android 15; Pixel 8 Build/AP4A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/{v}.0.0.0 Mobile Safari/537.36 Instagram 390.0.0.0',
    versions: [140],
  }),
  { navigator: { brands: [], connection_rtt: 0 }, environment: { has_chrome_object: false } },
)

const llvmpipe = 'ANGLE (Mesa, llvmpipe (LLVM 15.0.6 256 bits), OpenGL 4.5)'

/** A container: software rendering, UTC, hardly any fonts, no media devices, no voices. */
const container = merged(
  generated('chrome-linux', {
    versions: [140],
    screens: [[1280, 800, 1]],
    gpus: [['Google Inc. (Mesa)', llvmpipe]],
    locales: [inUtc],
  }),
  {
    navigator: {
      brands: [],
      ua_data_platform: null,
      ua_data_platform_version: null,
      ua_full_version: null,
    },
    audio: { voice_count: 0 },
    fonts: { detected_count: 1 },
    media: { device_count: 0, topology_hash: null },
  },
)

export const headlessChrome: Client = {
  ...clientOf(addAutomationTraces('headless', container), { automation: { cdp_runtime: true } }),
  clientHints: {
    'sec-ch-ua': '"Chromium";v="140", "HeadlessChrome";v="140"',
    'sec-ch-ua-platform': '"Linux"',
  },
}

/** A headless browser under puppeteer-extra-stealth: no flag, no name, but the marks of the patches. */
export const stealthPuppeteer = clientOf(container, {
  navigator: { plugins_genuine: false },
  automation: { cdp_runtime: true },
  tamper: {
    iframe_srcdoc_proxy: true,
    chrome_runtime_faked: true,
    patched_functions: ['navigator.plugins', 'Permissions.query'],
  },
})

/** An ordinary windowed Chromium in a container (Xvfb, llvmpipe, UTC, no devices) that a person or xdotool uses. */
export const bareChromium = clientOf(container, {
  navigator: { plugins: [], pdf_viewer_enabled: false, mime_types_count: 0 },
})

/** A device of the family: always the same one, in Germany unless the change says otherwise. */
function generated(name: string, change: Partial<DeviceFamily>): Snapshot {
  const family = families.map(([one]) => one).find((one) => one.name === name)
  if (!family) throw new Error(`no family ${name}`)
  return deviceSnapshot(
    { ...family, locales: [germany], ...change },
    createSeededRandom('scoring', name),
  )
}

function clientOf(device: Snapshot, parts: Parts = {}): Client {
  const { user_agent } = { ...device.navigator, ...parts.navigator }
  const proofs = device.native === null ? { proofs: proofsOf(user_agent ?? '') } : {}
  const snapshot = merged({ ...device, ...proofs }, parts)
  const hints = Object.entries(clientHints(snapshot.navigator))
  return {
    snapshot,
    clientHints: Object.fromEntries(hints.map(([name, value]) => [name.toLowerCase(), value])),
  }
}

function merged(snapshot: Parts, parts: Parts): Snapshot {
  return snapshotSchema.parse(withParts({ snapshot }, parts).snapshot)
}

/** With parts of the snapshot replaced member by member. */
export function withParts(client: Client, parts: Parts): Client {
  const replaced = Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [
      name,
      { ...Object.entries(client.snapshot).find(([n]) => n === name)?.[1], ...part },
    ]),
  )
  return { ...client, snapshot: { ...client.snapshot, ...replaced } }
}
