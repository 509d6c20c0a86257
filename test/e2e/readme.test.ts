import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../infra/local/free-port.ts'
import { openToken } from '../../infra/wire/sealed-token.ts'
import { createProfile, openHeadless } from '../support/chromium.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

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

/** A customer's site: one page with `script` in it, and the /signup that the script posts to. */
async function visitPageWith(script: string): Promise<Posted> {
  const { promise: posted, resolve } = Promise.withResolvers<Posted>()
  const site = createServer(async (request, response) => {
    if (request.url === '/signup') {
      const chunks = await request.toArray()
      resolve(JSON.parse(Buffer.concat(chunks).toString()))
    }
    response.setHeader('content-type', 'text/html').end(`<script type="module">${script}</script>`)
  })
  const port = await freePort()
  site.listen(port, '127.0.0.1')
  const profile = await createProfile()
  const browser = await openHeadless(profile)
  try {
    const page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${port}/`)
    return await posted
  } finally {
    await browser.close()
    await profile.remove()
    site.close()
  }
}

describe("the README's first session", () => {
  let folder = ''
  let server: RunningTidegate
  // The README's server listens where the README says; the test's on a port of its own.
  const here = (code: string) => code.replaceAll('http://127.0.0.1:8787', server.baseUrl)

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-readme-'))
    server = await startTidegate({ dataDir: path.join(folder, '.tidegate') })
  }, 60_000)

  afterAll(async () => {
    await server?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  it('works as written: the page, then the back end', async () => {
    const { publishable_key, secret_key } = server.credentials.live
    const script = here(await codeBlock('page')).replace('pk_live_...', publishable_key)
    const { sessionId, sealedToken } = await visitPageWith(script)

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
