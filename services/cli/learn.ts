import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { z } from 'zod'
import { bankNumberAt, bankNumberOf, bankQuestion, bankSize } from '../../infra/challenges/bank.ts'
import {
  answersAsAnother,
  type EngineVersion,
  engineVersionOf,
  isRecorded,
  recordedAnswer,
} from '../../infra/challenges/challenges.ts'
import { questionBank } from '../../infra/challenges/questions.ts'
import type { MasterKey } from '../../infra/crypto/keyring.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { parsedJson } from '../../infra/text.ts'
import type { EngineQuestion } from '../../infra/wire/collect/protocol.ts'
import { answerDigest } from '../../projections/answers/digests.ts'
import type { Core } from '../server/dependencies.ts'
import { buildQuestions } from '../web/build-sdk.ts'
import { port } from './arguments.ts'
import { runUntilSignal } from './lifetime.ts'
import { type LoopbackAnswer, type LoopbackRequest, serveLoopback } from './loopback-server.ts'
import { openOperatorCore } from './operator/core.ts'
import { recordFact, userName } from './operator/facts.ts'
import { printable } from './tables.ts'

export function defineLearn(command: Command): void {
  command
    .option('--port <n>', 'to listen on; 0 picks a free one', port, 0)
    .option('--host <address>', 'to listen on: 0.0.0.0 lets a phone in the same network answer', '127.0.0.1')
    .option('--by <name>', 'who runs this', userName())
    .action(learn)
}

const stopWithinMs = 10_000
const weekMs = 7 * 24 * 60 * 60 * 1000
// Questions are replaced week by week. Those of the next half year are answered as well, so that one run lasts that long.
const ahead = 26 * weekMs

async function learn(flags: { port: number; host: string; by: string }): Promise<void> {
  const start = async (undo: AsyncDisposableStack) => {
    const core = await openOperatorCore()
    undo.defer(core.close)
    const script = await buildQuestions()
    const questions = questionsFrom(core.keyring.all, core.clock())
    // What is answered here counts for everybody, so that others who reach the port must not be able to.
    const secret = randomBytes(16).toString('hex')
    const server = await serveLoopback({
      ...flags,
      answer: answering({ ...core, secret, script, questions, by: flags.by }),
    })
    undo.defer(server.close)
    console.log(`Open ${server.url}${secret}/ in each browser whose answers are to count; Ctrl-C ends it.`)
  }
  await runUntilSignal({ start, stopWithinMs, logger: createLogger('warn', process.stderr) })
}

function questionsFrom(keys: MasterKey[], now: number): EngineQuestion[] {
  const places = Array.from({ length: bankSize }, (_, place) => place)
  const numbers = new Set([now, now + ahead].flatMap((at) => places.map((place) => bankNumberAt(place, at))))
  const ofBank = keys.flatMap((key) => [...numbers].map((number) => bankQuestion(number, key)))
  return [...Object.values(questionBank).flat(), ...ofBank]
}

interface Lesson extends Pick<Core, 'log' | 'codec' | 'clock'> {
  secret: string
  script: string
  questions: EngineQuestion[]
  by: string
}

const answersSchema = z.array(z.object({ id: z.int(), answer: z.string().max(128) }))
const javascript = { 'content-type': 'text/javascript' }

function answering(lesson: Lesson): (request: LoopbackRequest) => Promise<LoopbackAnswer> {
  const at = `/${lesson.secret}/`
  return async (request) => {
    switch (`${request.method} ${request.url}`) {
      case `GET ${at}`:
        return { status: 200, headers: { 'content-type': 'text/html' }, body: page }
      case `GET ${at}questions.js`:
        return { status: 200, headers: javascript, body: lesson.script }
      case `GET ${at}questions`:
        return { status: 200, body: JSON.stringify(lesson.questions) }
      case `POST ${at}answers`:
        return take(request, lesson)
      default:
        return { status: 404 }
    }
  }
}

async function take({ body, headers }: LoopbackRequest, lesson: Lesson): Promise<LoopbackAnswer> {
  const userAgent = headers['user-agent'] ?? ''
  const version = engineVersionOf(userAgent)
  const parsed = answersSchema.safeParse(parsedJson(body))
  if (!version || !parsed.success) return { status: 422, body: `Not a browser that is known: ${userAgent}` }
  const ids = new Set(lesson.questions.map(({ id }) => id))
  const answers = parsed.data.filter(({ id }) => ids.has(id))
  if (answers.length < ids.size) return { status: 422, body: `${answers.length} of ${ids.size} answers` }
  if (!isAsRecorded(answers, version))
    return { status: 422, body: `It does not answer as its user agent would: ${userAgent}` }
  const ofBank = answers.filter(({ id }) => bankNumberOf(id) !== undefined)
  await record(version.family, { userAgent, answers: ofBank }, lesson)
  const said = `${version.family} ${version.major}: ${ofBank.length} answers count now (${printable(userAgent)})`
  console.log(said)
  return { status: 200, body: said }
}

// A browser that calls itself another one, as developer tools let it, would teach that one's answers to everybody.
function isAsRecorded(answers: { id: number; answer: string }[], version: EngineVersion): boolean {
  const known = answers.flatMap(({ id, answer }) => {
    const recorded = recordedAnswer(version, id)
    return recorded === undefined ? [] : [recorded === answer]
  })
  if (!isRecorded(version))
    return !answersAsAnother(answers.filter(({ id }) => bankNumberOf(id) === undefined))
  return known.filter(Boolean).length >= known.length * 0.75
}

async function record(
  engine: string,
  { userAgent, answers }: { userAgent: string; answers: { id: number; answer: string }[] },
  { log, codec, clock, by }: Lesson,
): Promise<void> {
  const now = clock()
  const data = {
    engine_family: engine,
    browser: userAgent,
    answers: Object.fromEntries(answers.map(({ id, answer }) => [String(id), answerDigest(answer)])),
    learned_by: by,
    learned_at: now,
  }
  const about = { command: 'learn', idPrefix: 'learn', now }
  await recordFact({ log, codec }, { type: 'EngineAnswersLearned', data }, about)
}

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Tidegate learns</title>
<body>
<h1>Tidegate learns</h1>
<p id="state" role="status">This browser answers some thousand small questions about its engine.</p>
<script type="module">
import { answerQuestions } from './questions.js'
const state = document.getElementById('state')
async function teach() {
  const questions = await (await fetch('questions')).json()
  const answers = await answerQuestions(questions)
  const answer = await fetch('answers', { method: 'POST', body: JSON.stringify(answers) })
  return answer.text()
}
teach().then(
  (said) => { state.textContent = said },
  (error) => { state.textContent = 'It did not work: ' + error.message },
)
</script>
`
