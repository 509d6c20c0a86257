import { z } from 'zod'
import { parseJsonOrUndefined } from '../../infra/text.ts'
import type { EngineQuestion } from '../../infra/wire/collect/protocol.ts'
import { installedBrowsers, showPage } from '../../services/cli/installed-browsers.ts'
import { type LoopbackResponse, startLoopback } from '../../services/cli/loopback-server.ts'
import { buildQuestions } from '../../services/web/build-sdk.ts'
import type { AnswerTable } from './forging.ts'

export const oracleBrowsers = {
  chromium: /chrom/,
  firefox: /firefox/,
  webkitgtk: /MiniBrowser/,
} as const
export type OracleBrowser = keyof typeof oracleBrowsers

/** Browser elsewhere that visits no page of the site and only answers given questions. */
export interface Oracle {
  answer: AnswerTable
  close(): Promise<void>
}

const answersSchema = z.array(z.object({ id: z.int(), answer: z.string() }))
const withinMs = 60_000

const page = `<!doctype html>
<meta charset="utf-8">
<body>
<script type="module">
import { answerQuestions } from './questions.js'
for (;;) {
  const questions = await (await fetch('next')).json()
  const body = JSON.stringify(await answerQuestions(questions))
  if (questions.length > 0) await fetch('answers', { method: 'POST', body })
  else await new Promise((resolve) => setTimeout(resolve, 20))
}
</script>
`

export async function openOracle(name: OracleBrowser): Promise<Oracle> {
  const browser = installedBrowsers().find(({ program }) => oracleBrowsers[name].test(program))
  if (!browser) throw new Error(`there is no ${name} on this machine`)
  const script = await buildQuestions()
  const waiting: {
    questions: EngineQuestion[]
    resolve: (answers: Map<number, string>) => void
  }[] = []
  const html: LoopbackResponse = {
    status: 200,
    headers: { 'content-type': 'text/html' },
    body: page,
  }
  const server = await startLoopback({
    port: 0,
    async handle({ url, body }) {
      if (url === '/') return html
      if (url === '/questions.js')
        return { status: 200, headers: { 'content-type': 'text/javascript' }, body: script }
      if (url === '/next') return { status: 200, body: JSON.stringify(waiting[0]?.questions ?? []) }
      if (url !== '/answers') return { status: 404 }
      const answers = answersSchema.parse(parseJsonOrUndefined(body))
      waiting.shift()?.resolve(new Map(answers.map(({ id, answer }) => [id, answer])))
      return { status: 204 }
    },
  })
  const closing = Promise.withResolvers<void>()
  const shown = showPage(browser, server.url, () => closing.promise)
  return {
    async answer(questions) {
      const { promise, resolve, reject } = Promise.withResolvers<Map<number, string>>()
      const timer = setTimeout(() => reject(new Error(`${name} did not answer in time`)), withinMs)
      waiting.push({ questions, resolve })
      return promise.finally(() => clearTimeout(timer))
    },
    async close() {
      closing.resolve()
      await shown
      await server.close()
    },
  }
}
