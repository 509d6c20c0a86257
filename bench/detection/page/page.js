import { load } from '@fingerprintjs/botd'
import Scanner from 'fpscanner'

const settings = window.evalSettings
const run = location.pathname.split('/').pop()
const fields = ['name', 'email', 'message', 'terms', 'topic', 'send']

function post(path, body) {
  return fetch(`/${path}/${run}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/** Reports the positions of the fields in the viewport, for input from outside the browser. */
function tellLayout() {
  const boxes = fields.map((id) => {
    const { left, top, width, height } = document.getElementById(id).getBoundingClientRect()
    return [id, { left, top, width, height }]
  })
  const view = { width: innerWidth, height: innerHeight, ratio: devicePixelRatio, scroll: scrollY }
  return post('layout', { ...view, boxes: Object.fromEntries(boxes) })
}

async function askBotd() {
  const agent = await load({ monitoring: false })
  const { bot, botKind } = agent.detect()
  return { bot, why: bot ? [botKind] : [] }
}

async function askFpscanner() {
  const found = await new Scanner().collectFingerprint({ encrypt: false })
  const fired = Object.entries(found.fastBotDetectionDetails).filter(([, { detected }]) => detected)
  return { bot: found.fastBotDetection, why: fired.map(([name]) => name) }
}

/** Returns a peer's result. `bot` is null if the peer fails or does not respond in time. */
async function answerOf(ask) {
  const late = new Promise((resolve) =>
    setTimeout(resolve, 4000, { bot: null, why: ['no answer'] }),
  )
  return Promise.race([ask(), late]).catch((error) => ({
    bot: null,
    why: [`failed: ${error?.message}`],
  }))
}

async function begin() {
  const sdk = await (window.evalSdk ?? import(`${settings.endpoint}/t.js`))
  const client = sdk.start({ publishableKey: settings.publishableKey, endpoint: settings.endpoint })
  await client.waitForFingerprint()
  const first = await client.getSession()
  // Peers run after the first hand-off, so that they do not affect its snapshot.
  const peers = { botd: await answerOf(askBotd), fpscanner: await answerOf(askFpscanner) }
  document.getElementById('form').addEventListener('submit', (event) => {
    event.preventDefault()
    client.getSession().then((next) => post('result', { phase: 'act', ...next, ...peers }), failed)
  })
  addEventListener('resize', () => setTimeout(tellLayout, 200))
  addEventListener('scroll', () => setTimeout(tellLayout, 200))
  await tellLayout()
  await post('result', { phase: 'load', ...first, ...peers })
  // The driver extension waits for this.
  document.documentElement.dataset.judged = 'load'
}

function failed(error) {
  return post('failed', { message: `${error} ${error?.cause ?? ''} ${error?.stack ?? ''}` })
}

if (document.readyState === 'complete') begin().catch(failed)
else addEventListener('load', () => begin().catch(failed))
