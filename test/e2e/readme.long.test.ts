import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect } from 'vitest'
import { openToken } from '../../infra/wire/sealed-token.ts'
import { needs } from '../support/needs.ts'
import { visitSite } from '../support/site.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { describe, it } = needs('chromium')

const run = promisify(execFile)

/** The code block that follows `<!-- first-session: name -->` in the README. */
async function codeBlock(name: string): Promise<string> {
  const readme = await readFile(path.resolve(import.meta.dirname, '../../README.md'), 'utf8')
  const block = new RegExp(`<!-- first-session: ${name} -->\n\`\`\`\\w+\n([\\s\\S]*?)\`\`\``).exec(
    readme,
  )?.[1]
  if (!block) throw new Error(`the README has no block ${name}`)
  return block
}

interface Posted {
  sessionId: string
  sealedToken: string
}

describe("the README's first session", () => {
  const folder = temporaryFolder('readme')
  let server: RunningTidegate
  // The README's server listens where the README says; the test's on a port of its own.
  const here = (code: string) => code.replaceAll('http://127.0.0.1:8787', server.baseUrl)

  beforeAll(async () => {
    server = await startTidegate({ dataDir: path.join(folder, '.tidegate') })
  }, 60_000)

  afterAll(() => server?.stop())

  it('works as written: the page, then the back end', async () => {
    const { publishable_key, secret_key } = server.credentials.live
    const script = here(await codeBlock('page')).replace('pk_live_...', publishable_key)
    const html = `<script type="module">${script}</script>`
    const { sessionId, sealedToken } = (await visitSite<Posted>({ html })).posted

    const backend = here(await codeBlock('backend'))
    const env = { PATH: process.env.PATH, SESSION_ID: sessionId }
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', backend], { cwd: folder, env })
    const [list, detail] = stdout.split(/(?<=\})(?=\{)/).map((json) => JSON.parse(json))
    expect(list.data.map((session: { id: string }) => session.id)).toEqual([sessionId])
    expect(detail.data).toMatchObject({
      object: 'session',
      id: sessionId,
      decision: { decision_status: 'final' },
    })

    const payload = openToken(sealedToken, { secretKey: secret_key })
    expect(payload).toMatchObject({
      session_id: sessionId,
      decision: { event_id: detail.data.decision.event_id },
    })
  }, 60_000)
})
