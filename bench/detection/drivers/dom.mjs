// Simulated browsers, jsdom and happy-dom, with Node's web APIs. Options: `package`, `userAgent`.
import { drive, options, text } from './common.mjs'

const fromNode = [
  'fetch',
  'TextEncoder',
  'TextDecoder',
  'CompressionStream',
  'Response',
  'Blob',
  'crypto',
]
let window

async function openJsdom(url) {
  const { JSDOM, ResourceLoader, VirtualConsole } = await import('jsdom')
  const { userAgent } = options
  const resources = userAgent && ResourceLoader ? new ResourceLoader({ userAgent }) : 'usable'
  const dom = await JSDOM.fromURL(url, {
    resources,
    runScripts: 'dangerously',
    pretendToBeVisual: true,
    virtualConsole: new VirtualConsole(),
    beforeParse: lend,
  })
  return dom.window
}

async function openHappyDom(url) {
  const { Browser } = await import('happy-dom')
  const settings = {
    enableJavaScriptEvaluation: true,
    suppressInsecureJavaScriptEnvironmentWarning: true,
  }
  const page = new Browser({ settings }).newPage()
  await page.goto(url, { beforeContentCallback: lend })
  return page.mainFrame.window
}

function lend(target) {
  for (const name of fromNode) {
    const value = name === 'fetch' ? fetchOf(target) : globalThis[name]
    Object.defineProperty(target, name, { value, configurable: true, writable: true })
  }
}

/** Returns a fetch that sends the page's user agent, resolves relative URLs, and drops signals of the page's realm. */
function fetchOf({ navigator }) {
  return (to, { method, headers, body } = {}) => {
    const own =
      body instanceof Uint8Array || typeof body === 'string' ? body : body && new Uint8Array(body)
    const named = { ...headers, 'user-agent': navigator.userAgent, 'accept-language': 'en-US' }
    return fetch(new URL(to, options.url), { method, headers: named, body: own })
  }
}

function fill(id, value) {
  const element = window.document.getElementById(id)
  element.focus()
  element.value = value
  for (const type of ['input', 'change'])
    element.dispatchEvent(new window.Event(type, { bubbles: true }))
}

await drive({
  async load(url) {
    const address = url.replace('/p/', '/classic/')
    window = await (options.package === 'jsdom' ? openJsdom(address) : openHappyDom(address))
  },
  async act() {
    for (const [id, value] of Object.entries(text)) fill(id, value)
    window.document.getElementById('terms').click()
    window.document.getElementById('send').click()
  },
})
