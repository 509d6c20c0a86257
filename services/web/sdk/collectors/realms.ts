import type { Snapshot } from '../../../../schemas/observations.ts'
import type { StartOptions } from '../api.ts'
import { isRealmAttached, jsonOf, realmWindow } from '../realm.ts'
import {
  booleanOf,
  member,
  nextSlice,
  numberOf,
  readOrNull,
  textOf,
  textsOf,
  withinBudget,
  yieldToPage,
} from '../support.ts'
import { trusted } from '../trusted.ts'
import { isV8 } from './environment.ts'
import { candidateFonts } from './fonts.ts'
import { createContext, release, rendererName } from './graphics.ts'

interface RealmAnswers {
  realm: Snapshot['worker']
  webdriver: boolean | null
  /** Detected readers of the worker's console. */
  readers: string[]
  /** Members of the realm's `navigator` that a script replaced. */
  foreign: string[]
  /** Values by name, to compare with the page's. */
  says: RealmValues
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
const answer = {
  available: true, user_agent: n.userAgent, platform: n.platform, languages: [...n.languages],
  hardware_concurrency: n.hardwareConcurrency, webdriver: n.webdriver, webgl_renderer: null, reads, foreign,
  says: { userAgent: n.userAgent, appVersion: n.appVersion, platform: n.platform, language: n.language,
    languages: n.languages.join(), hardwareConcurrency: n.hardwareConcurrency, deviceMemory: n.deviceMemory,
    webdriver: n.webdriver, timezone: Intl.DateTimeFormat().resolvedOptions().timeZone } }
`
// Preloads fonts into the process's cache, so that the page's thread need not wait for each. The characters belong to
// scripts with fonts of their own.
const workerFonts = () => `
postMessage(answer)
try {
  const context = new OffscreenCanvas(1, 1).getContext('2d')
  for (const name of ${jsonOf(candidateFonts)}) {
    context.font = '48px "' + name + '", serif'
    context.measureText('m')
  }
  context.measureText('\u6f22\u3042\uac00\u0627\u05d0\u{1f9d1}')
} catch {}
`
// Sent later than the rest, because creating a graphics context can take a while.
const workerGraphics = `
postMessage({ ...answer, fonts: true })
try {
  const gl = new OffscreenCanvas(16, 16).getContext('webgl')
  const info = gl.getExtension('WEBGL_debug_renderer_info')
  answer.webgl_renderer = gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER)
  const lose = gl.getExtension('WEBGL_lose_context')
  if (lose) lose.loseContext()
} catch {}
`
const workerEnd = `
postMessage({ ...answer, last: true })
`

const graphicsMs = 3000

type Mode = NonNullable<StartOptions['mode']>

interface WorkerOptions {
  ms: number
  /** Called once the worker has sent everything except graphics, or failed. */
  onAnswer(): void
  /** Called once the worker has preloaded the fonts, or failed. */
  onFonts(): void
}

/** Collects the values of a fresh worker within `ms`; null values if none starts. */
export async function askWorker(
  mode: Mode,
  { ms, onAnswer, onFonts }: WorkerOptions,
): Promise<RealmAnswers> {
  const source = [
    workerSource,
    ...(mode === 'full' ? [workerFonts(), workerGraphics] : []),
    workerEnd,
  ]
  const url = URL.createObjectURL(new Blob(source, { type: 'text/javascript' }))
  let worker: Worker | undefined
  let answer: unknown = null
  await withinBudget(ms, () => {
    const started = new Worker(trusted.createScriptURL(url))
    worker = started
    return new Promise<void>((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout>
      started.onmessage = ({ data }) => {
        answer = data
        onAnswer()
        if (member(data, 'fonts') === true) onFonts()
        clearTimeout(timer)
        // Only graphics are missing by then, which are not worth more time.
        if (member(data, 'last') === true) resolve()
        else timer = setTimeout(resolve, graphicsMs)
      }
      started.onerror = (event) => {
        event.preventDefault()
        reject(new Error('the worker did not start'))
      }
    })
  })
  onAnswer()
  onFonts()
  worker?.terminate()
  URL.revokeObjectURL(url)
  return readAnswers(answer)
}

/** Collects the values of an empty same-origin frame, whose objects are genuine if only the page's were changed. */
export async function askFrame(mode: Mode): Promise<RealmAnswers> {
  if (!realmWindow || !isRealmAttached()) return readAnswers(null)
  const { navigator, document: owner } = realmWindow
  await nextSlice()
  const context = mode === 'full' ? createContext('webgl', owner) : null
  await yieldToPage()
  const answers = {
    available: true,
    user_agent: navigator.userAgent,
    platform: member(navigator, 'platform'),
    // The array belongs to the frame's realm; a copy outlives the frame.
    languages: readOrNull(() => Array.from(textsOf(navigator.languages))),
    hardware_concurrency: navigator.hardwareConcurrency,
    webdriver: member(navigator, 'webdriver'),
    webgl_renderer: rendererName(context),
    says: readOrNull(() => valuesIn(realmWindow as typeof window)),
  }
  release(context)
  return readAnswers(answers)
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
  frame: RealmAnswers | null
  worker: RealmAnswers | null
}

/** Returns the names of values that differ from the page's: `frame.userAgent`, `worker.languages`. */
export function realmDifferences(realms: Realms): string[] {
  const page = readOrNull(() => textValues(valuesIn(window))) ?? {}
  return Object.entries(realms).flatMap(([where, realm]) =>
    Object.entries(realm?.says ?? {})
      .filter(([name, value]) => page[name] !== value)
      .map(([name]) => `${where}.${name}`),
  )
}

// Converts the values to text, without missing ones.
function textValues(values: unknown): RealmValues {
  const entries = Object.entries(Object(values)).filter(
    ([, value]) => value !== undefined && value !== null,
  )
  return Object.fromEntries(entries.map(([name, value]) => [name, `${value}`]))
}

// Reads untrusted answers; missing ones are null or empty.
function readAnswers(answers: unknown): RealmAnswers {
  return {
    realm: {
      available: booleanOf(member(answers, 'available')),
      user_agent: textOf(member(answers, 'user_agent')),
      platform: textOf(member(answers, 'platform')),
      languages: textsOf(member(answers, 'languages')),
      hardware_concurrency: numberOf(member(answers, 'hardware_concurrency')),
      webgl_renderer: textOf(member(answers, 'webgl_renderer')),
    },
    webdriver: booleanOf(member(answers, 'webdriver')),
    readers: workerReaders(member(answers, 'reads')),
    foreign: textsOf(member(answers, 'foreign')),
    says: textValues(member(answers, 'says')),
  }
}

function workerReaders(reads: unknown): string[] {
  const count = (name: string) => numberOf(member(reads, name)) ?? 0
  const isFormatted = count('stack') > 0
  const isRead = isV8() && count('name') > count('message')
  return [...(isFormatted ? ['worker.stack'] : []), ...(isRead ? ['worker.getter'] : [])]
}
