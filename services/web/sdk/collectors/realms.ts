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
  /** Ways in which something was seen to read what the worker logs. */
  readers: string[]
  /** Members of `navigator` that a script replaced in the realm. */
  foreign: string[]
  /** What the realm answers, by name, to compare with the page. */
  says: Says
}

type Says = Record<string, string>

// Runs in the worker; text, because a bundler must not reach into it.
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
// The process remembers what the system said of a font, so the page's thread need not wait for each. The characters are of
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
  /** Called when the worker has answered all but its graphics, or cannot. */
  onAnswer(): void
  /** Called when it has looked for the fonts as well, or cannot. */
  onFonts(): void
}

/** What a fresh worker says within so many milliseconds; absent values where none starts. */
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
        // Only its graphics are missing then, which are not worth more time.
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

/** What an empty frame of the same origin says: its objects are fresh where only the page's were changed. */
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

const ofNavigator =
  `webdriver userAgent appVersion platform vendor productSub language languages hardwareConcurrency deviceMemory
  maxTouchPoints pdfViewerEnabled`.split(/\s+/)
const ofScreen = ['width', 'height', 'availWidth', 'availHeight', 'colorDepth']

function valuesIn(global: typeof window): Record<string, unknown> {
  const { navigator, screen } = global
  return {
    ...Object.fromEntries(ofNavigator.map((name) => [name, member(navigator, name)])),
    ...Object.fromEntries(ofScreen.map((name) => [`screen.${name}`, member(screen, name)])),
    plugins: navigator.plugins.length,
    timezone: global.Intl.DateTimeFormat().resolvedOptions().timeZone,
    timezoneOffset: new global.Date(0).getTimezoneOffset(),
  }
}

export interface Realms {
  frame: RealmAnswers | null
  worker: RealmAnswers | null
}

/** Names of what a frame or a worker says otherwise than the page: `frame.userAgent`, `worker.languages`. */
export function realmDifferences(realms: Realms): string[] {
  const page = readOrNull(() => saysOf(valuesIn(window))) ?? {}
  return Object.entries(realms).flatMap(([where, realm]) =>
    Object.entries(realm?.says ?? {})
      .filter(([name, value]) => page[name] !== value)
      .map(([name]) => `${where}.${name}`),
  )
}

// The values as texts; what a realm does not have is left out, and so is what only it has.
function saysOf(values: unknown): Says {
  const entries = Object.entries(Object(values)).filter(
    ([, value]) => value !== undefined && value !== null,
  )
  return Object.fromEntries(entries.map(([name, value]) => [name, `${value}`]))
}

// Without answers everything is null or empty.
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
    says: saysOf(member(answers, 'says')),
  }
}

function workerReaders(reads: unknown): string[] {
  const count = (name: string) => numberOf(member(reads, name)) ?? 0
  const isFormatted = count('stack') > 0
  const isRead = isV8() && count('name') > count('message')
  return [...(isFormatted ? ['worker.stack'] : []), ...(isRead ? ['worker.getter'] : [])]
}
