import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { isIP } from 'node:net'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'
import { createLogger } from '../../infra/telemetry.ts'
import { countText, parseJsonOrUndefined } from '../../infra/text.ts'
import { errorMessage } from '../../infra/thrown.ts'
import type { EngineQuestion } from '../../infra/wire/collect/protocol.ts'
import { decideEngineAnswers, teachingQuestions } from '../../projections/answers/teaching.ts'
import type { Core } from '../server/dependencies.ts'
import { buildQuestions } from '../web/build-sdk.ts'
import { port } from './arguments.ts'
import { installedBrowsers, showPage } from './installed-browsers.ts'
import { type LoopbackRequest, type LoopbackResponse, startLoopback } from './loopback-server.ts'
import { openOperatorCore } from './operator/core.ts'
import { appendOperatorEvent, userName } from './operator/operator-event.ts'
import { runUntilSignal } from './stop-signals.ts'
import { printable } from './tables.ts'

export function defineLearn(command: Command): void {
  command
    .option('--port <n>', 'port to listen on; 0 picks a free one', port, 0)
    .option(
      '--host <address>',
      'address to listen on; 0.0.0.0 also accepts phones on the same network',
      address,
      '127.0.0.1',
    )
    .option('--open', 'open the page in the installed Chromium, Firefox and WebKitGTK, then exit')
    .addOption(
      new Option('--by <name>', 'name to record in the audit log').default(
        userName(),
        'your user name',
      ),
    )
    .action(learn)
}

function address(text: string): string {
  if (isIP(text) || text === 'localhost') return text
  throw new InvalidArgumentError('It must be an IP address of this machine or localhost.')
}

const stopWithinMs = 10_000
const browserTimeoutMs = 120_000

async function learn(flags: {
  port: number
  host: string
  by: string
  open?: true
}): Promise<void> {
  const start = async (undo: AsyncDisposableStack) => {
    const core = await openOperatorCore()
    undo.defer(core.close)
    const script = await buildQuestions()
    const questions = teachingQuestions(core.keyring.all, core.clock())
    // Learned answers apply to all organizations, so the secret in the URL keeps out others who can reach the port.
    const secret = randomBytes(16).toString('hex')
    const results: LearnResults = new EventEmitter()
    const server = await startLoopback({
      ...flags,
      handle: createHandler({ ...core, secret, script, questions, by: flags.by, results }),
    })
    undo.defer(server.close)
    const url = `${server.url}${secret}/`
    if (flags.open) await teachInstalledBrowsers(url, results)
    else console.log(`Open ${url} in each browser to learn from; press Ctrl-C to stop.`)
  }
  if (!flags.open)
    return runUntilSignal({ start, stopWithinMs, logger: createLogger('warn', process.stderr) })
  await using undo = new AsyncDisposableStack()
  await start(undo)
}

async function teachInstalledBrowsers(url: string, results: LearnResults): Promise<void> {
  const browsers = installedBrowsers()
  if (browsers.length === 0)
    throw new Error(
      '--open found no Chromium, Firefox or WebKitGTK on this machine: run without it and open the link yourself.',
    )
  let learnedCount = 0
  for (const browser of browsers) {
    const waitForResult = async () => {
      const [learned] = await once(results, 'result', {
        signal: AbortSignal.timeout(browserTimeoutMs),
      })
      if (learned) learnedCount++
    }
    await showPage(browser, url, waitForResult).catch((error: unknown) =>
      console.log(`${browser.program} did not respond: ${errorMessage(error)}`),
    )
  }
  if (learnedCount === 0) throw new Error('Nothing was learned from any browser.')
}

type LearnResults = EventEmitter<{ result: [learned: boolean] }>

interface LearnDeps extends Pick<Core, 'log' | 'codec' | 'clock'> {
  secret: string
  script: string
  questions: EngineQuestion[]
  by: string
  results: LearnResults
}

const answersSchema = z.array(z.object({ id: z.int(), answer: z.string().max(128) }))
const javascript = { 'content-type': 'text/javascript' }

function createHandler(deps: LearnDeps): (request: LoopbackRequest) => Promise<LoopbackResponse> {
  const prefix = `/${deps.secret}/`
  return async (request) => {
    switch (`${request.method} ${request.url}`) {
      case `GET ${prefix}`:
        return { status: 200, headers: { 'content-type': 'text/html' }, body: page }
      case `GET ${prefix}questions.js`:
        return { status: 200, headers: javascript, body: deps.script }
      case `GET ${prefix}questions`:
        return { status: 200, body: JSON.stringify(deps.questions) }
      case `POST ${prefix}answers`:
        return learnAnswers(request, deps)
      default:
        return { status: 404 }
    }
  }
}

async function learnAnswers(
  { body, headers }: LoopbackRequest,
  deps: LearnDeps,
): Promise<LoopbackResponse> {
  const userAgent = headers['user-agent'] ?? ''
  const { data: answers } = answersSchema.safeParse(parseJsonOrUndefined(body))
  if (!answers) return { status: 422, body: 'The answers must be a list of ids and texts.' }
  const { questions, by, clock } = deps
  const now = clock()
  const sent = { questions, answers, userAgent }
  const learned = decideEngineAnswers({ organizationId: null, ...sent, by, now })
  if (typeof learned === 'string') {
    console.log(learned)
    deps.results.emit('result', false)
    return { status: 422, body: learned }
  }
  const details = { command: 'learn', idPrefix: 'learn', now }
  await appendOperatorEvent(deps, { type: 'EngineAnswersLearned', data: learned }, details)
  const count = Object.keys(learned.answers).length
  const message = `Learned ${countText(count, 'answer')} for ${learned.engine_family} (${printable(userAgent)})`
  console.log(message)
  deps.results.emit('result', true)
  return { status: 200, body: message }
}

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Tidegate learn</title>
<body>
<h1>Learning this browser's engine</h1>
<p id="state" role="status">Answering a few thousand small questions about the JavaScript engine…</p>
<script type="module">
import { answerQuestions } from './questions.js'
const state = document.getElementById('state')
async function teach() {
  const questions = await (await fetch('questions')).json()
  const answers = await answerQuestions(questions)
  const response = await fetch('answers', { method: 'POST', body: JSON.stringify(answers) })
  return response.text()
}
teach().then(
  (message) => { state.textContent = message },
  (error) => { state.textContent = 'Failed: ' + error.message },
)
</script>
`
