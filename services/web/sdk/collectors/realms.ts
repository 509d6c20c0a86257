import type { Snapshot } from '../../../../schemas/observations.ts'
import { booleanOf, member, numberOf, readOrNull, textOf, textsOf, withinBudget } from '../support.ts'
import { createContext, release, rendererName } from './graphics.ts'

interface RealmAnswers {
  realm: Snapshot['worker']
  webdriver: boolean | null
}

const absent: RealmAnswers = {
  realm: {
    available: null,
    user_agent: null,
    platform: null,
    languages: [],
    hardware_concurrency: null,
    webgl_renderer: null,
  },
  webdriver: null,
}

/** Runs in the worker; text, because a bundler must not reach into it. Graphics come last: they can take a while. */
const workerSource = `
const n = navigator, answer = {
  available: true, user_agent: n.userAgent, platform: n.platform, languages: [...n.languages],
  hardware_concurrency: n.hardwareConcurrency, webdriver: n.webdriver, webgl_renderer: null }
postMessage(answer)
try {
  const gl = new OffscreenCanvas(16, 16).getContext('webgl')
  const info = gl.getExtension('WEBGL_debug_renderer_info')
  answer.webgl_renderer = gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER)
  gl.getExtension('WEBGL_lose_context')?.loseContext()
} catch {}
postMessage({ ...answer, last: true })
`

export async function askWorker(): Promise<RealmAnswers> {
  const url = URL.createObjectURL(new Blob([workerSource], { type: 'text/javascript' }))
  let worker: Worker | undefined
  let answer: unknown = null
  await withinBudget(900, () => {
    const started = new Worker(url)
    worker = started
    return new Promise<void>((resolve, reject) => {
      started.onmessage = ({ data }) => {
        answer = data
        if (member(data, 'last') === true) resolve()
      }
      started.onerror = (event) => {
        event.preventDefault()
        reject(new Error('the worker did not start'))
      }
    })
  })
  worker?.terminate()
  URL.revokeObjectURL(url)
  return answer === null ? absent : readAnswers(answer)
}

/** What an empty frame of the same origin says: its objects are fresh where only the page's were changed. */
export function askFrame(): RealmAnswers {
  const frame = document.createElement('iframe')
  frame.hidden = true
  frame.setAttribute('aria-hidden', 'true')
  const host = document.body ?? document.documentElement
  try {
    host.append(frame)
    const navigator = member(frame.contentWindow, 'navigator')
    const owner = frame.contentDocument
    const context = owner && createContext('webgl', owner)
    const answers = { ...frameAnswers(navigator), webgl_renderer: rendererName(context) }
    release(context)
    return readAnswers(answers)
  } catch {
    return absent
  } finally {
    frame.remove()
  }
}

function frameAnswers(navigator: unknown) {
  return {
    available: navigator !== undefined,
    user_agent: member(navigator, 'userAgent'),
    platform: member(navigator, 'platform'),
    // The array belongs to the frame's realm; a copy outlives the frame.
    languages: readOrNull(() => Array.from(textsOf(member(navigator, 'languages')))),
    hardware_concurrency: member(navigator, 'hardwareConcurrency'),
    webdriver: member(navigator, 'webdriver'),
  }
}

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
  }
}
