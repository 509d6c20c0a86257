import type { Snapshot } from '../../../../schemas/observations.ts'
import type { StartOptions } from '../api.ts'
import { isRealmAttached, jsonOf, realmWindow } from '../realm.ts'
import {
  booleanOrNull,
  member,
  nextSlice,
  numberOrNull,
  stringsIn,
  textOrNull,
  tryOrNull,
  withTimeoutOrNull,
  yieldToPage,
} from '../support.ts'
import { trusted } from '../trusted.ts'
import { isV8 } from './environment.ts'
import { candidateFonts } from './fonts.ts'
import { createContext, releaseContext, rendererName } from './graphics.ts'

interface RealmReadings {
  realm: Snapshot['worker']
  webdriver: boolean | null
  /** Detected readers of the worker's console; see `detectConsoleReaders`. */
  readers: string[]
  /** Members of the realm's `navigator` that a script replaced. */
  foreign: string[]
  /** Values to compare with the page's, by name. */
  values: RealmValues
}

type RealmValues = Record<string, string>

// Source of the worker, as text, so that bundlers do not transform it.
const workerSource = `
const n = navigator, reads = { stack: 0, name: 0, message: 0 }
const count = (name) => () => String(++reads[name])
try {
  Error.prepareStackTrace = count('stack')
  console.debug(new Error(''))
  delete Error.prepareStackTrace
  const bait = new Error('')
  for (const name of ['name', 'message']) Object.defineProperty(bait, name, { get: count(name) })
  console.debug(bait)
} catch {}
Error.stackTraceLimit = 4
const scriptOf = (error) => (/([^\\s(@]*):\\d+:\\d+/.exec(error.stack) || [])[1]
const isForeign = (name) => {
  const { get } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(n), name) || {}
  if (!get || Object.prototype.hasOwnProperty.call(n, name)) return get !== undefined
  try { [get.call({})] } catch (error) { return scriptOf(error) !== scriptOf(new Error('')) }
  return true
}
let foreign = []
try { foreign = ['userAgent', 'platform', 'languages'].filter(isForeign) } catch {}
const readings = {
  available: true, user_agent: n.userAgent, platform: n.platform, languages: [...n.languages],
  hardware_concurrency: n.hardwareConcurrency, webdriver: n.webdriver, webgl_renderer: null, reads, foreign,
  values: { userAgent: n.userAgent, appVersion: n.appVersion, platform: n.platform, language: n.language,
    languages: n.languages.join(), hardwareConcurrency: n.hardwareConcurrency, deviceMemory: n.deviceMemory,
    webdriver: n.webdriver, timezone: Intl.DateTimeFormat().resolvedOptions().timeZone } }
`
// Preloads fonts into the process's cache, so that the page's thread does not wait for them. The characters belong to
// scripts with fonts of their own.
const workerFonts = () => `
postMessage(readings)
try {
  const context = new OffscreenCanvas(1, 1).getContext('2d')
  for (const name of ${jsonOf(candidateFonts)}) {
    context.font = '48px "' + name + '", serif'
    context.measureText('m')
  }
  context.measureText('\u6f22\u3042\uac00\u0627\u05d0\u{1f9d1}')
} catch {}
`
// Graphics come last, because creating a context can take a while.
const workerGraphics = `
postMessage({ ...readings, fonts: true })
try {
  const gl = new OffscreenCanvas(16, 16).getContext('webgl')
  const info = gl.getExtension('WEBGL_debug_renderer_info')
  readings.webgl_renderer = gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER)
  const lose = gl.getExtension('WEBGL_lose_context')
  if (lose) lose.loseContext()
} catch {}
`
const workerEnd = `
postMessage({ ...readings, last: true })
`

const graphicsMs = 3000

type Mode = NonNullable<StartOptions['mode']>

interface WorkerOptions {
  ms: number
  /** Called once the worker has read its dates and everything else except graphics, or failed. */
  onDatesRead(): void
  /** Called once the worker has preloaded the fonts, or failed. */
  onFonts(): void
}

/** Collects values in a new worker within `ms`. They are null if no worker starts. */
export async function collectWorker(
  mode: Mode,
  { ms, onDatesRead, onFonts }: WorkerOptions,
): Promise<RealmReadings> {
  const source = [
    workerSource,
    ...(mode === 'full' ? [workerFonts(), workerGraphics] : []),
    workerEnd,
  ]
  const url = URL.createObjectURL(new Blob(source, { type: 'text/javascript' }))
  let worker: Worker | undefined
  let readings: unknown = null
  await withTimeoutOrNull(ms, () => {
    const started = new Worker(trusted.createScriptURL(url))
    worker = started
    return new Promise<void>((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout>
      started.onmessage = ({ data }) => {
        readings = data
        onDatesRead()
        if (member(data, 'fonts') === true) onFonts()
        clearTimeout(timer)
        // Only graphics are missing now, so wait only a little longer.
        if (member(data, 'last') === true) resolve()
        else timer = setTimeout(resolve, graphicsMs)
      }
      started.onerror = (event) => {
        event.preventDefault()
        reject(new Error('the worker did not start'))
      }
    })
  })
  onDatesRead()
  onFonts()
  worker?.terminate()
  URL.revokeObjectURL(url)
  return parseReadings(readings)
}

/** Collects values in the clean realm, whose objects are genuine unless a script changes those of every frame. */
export async function collectFrame(mode: Mode): Promise<RealmReadings> {
  if (!realmWindow || !isRealmAttached()) return parseReadings(null)
  const { navigator, document: owner } = realmWindow
  await nextSlice()
  const context = mode === 'full' ? createContext('webgl', owner) : null
  await yieldToPage()
  const readings = {
    available: true,
    user_agent: navigator.userAgent,
    platform: member(navigator, 'platform'),
    // Copies the array, because it belongs to the frame, which the page may remove.
    languages: tryOrNull(() => Array.from(stringsIn(navigator.languages))),
    hardware_concurrency: navigator.hardwareConcurrency,
    webdriver: member(navigator, 'webdriver'),
    webgl_renderer: rendererName(context),
    values: tryOrNull(() => valuesIn(realmWindow as typeof window)),
  }
  releaseContext(context)
  return parseReadings(readings)
}

const navigatorNames =
  `webdriver userAgent appVersion platform vendor productSub language languages hardwareConcurrency deviceMemory
  maxTouchPoints pdfViewerEnabled`.split(/\s+/)
const screenNames = ['width', 'height', 'availWidth', 'availHeight', 'colorDepth']

function valuesIn(global: typeof window): Record<string, unknown> {
  const { navigator, screen } = global
  return {
    ...Object.fromEntries(navigatorNames.map((name) => [name, member(navigator, name)])),
    ...Object.fromEntries(screenNames.map((name) => [`screen.${name}`, member(screen, name)])),
    plugins: navigator.plugins.length,
    timezone: global.Intl.DateTimeFormat().resolvedOptions().timeZone,
    timezoneOffset: new global.Date(0).getTimezoneOffset(),
  }
}

export interface Realms {
  frame: RealmReadings | null
  worker: RealmReadings | null
}

/** Returns the names of values that differ from the page's: `frame.userAgent`, `worker.languages`. */
export function realmDifferences(realms: Realms): string[] {
  const page = tryOrNull(() => textValues(valuesIn(window))) ?? {}
  return Object.entries(realms).flatMap(([where, realm]) =>
    Object.entries(realm?.values ?? {})
      .filter(([name, value]) => page[name] !== value)
      .map(([name]) => `${where}.${name}`),
  )
}

// Converts values to text, and leaves out missing ones.
function textValues(values: unknown): RealmValues {
  const entries = Object.entries(Object(values)).filter(
    ([, value]) => value !== undefined && value !== null,
  )
  return Object.fromEntries(entries.map(([name, value]) => [name, `${value}`]))
}

// Parses untrusted values. Missing ones are null or empty.
function parseReadings(readings: unknown): RealmReadings {
  return {
    realm: {
      available: booleanOrNull(member(readings, 'available')),
      user_agent: textOrNull(member(readings, 'user_agent')),
      platform: textOrNull(member(readings, 'platform')),
      languages: stringsIn(member(readings, 'languages')),
      hardware_concurrency: numberOrNull(member(readings, 'hardware_concurrency')),
      webgl_renderer: textOrNull(member(readings, 'webgl_renderer')),
    },
    webdriver: booleanOrNull(member(readings, 'webdriver')),
    readers: workerReaders(member(readings, 'reads')),
    foreign: stringsIn(member(readings, 'foreign')),
    values: textValues(member(readings, 'values')),
  }
}

function workerReaders(reads: unknown): string[] {
  const count = (name: string) => numberOrNull(member(reads, name)) ?? 0
  const isFormatted = count('stack') > 0
  const isRead = isV8() && count('name') > count('message')
  return [...(isFormatted ? ['worker.stack'] : []), ...(isRead ? ['worker.getter'] : [])]
}
