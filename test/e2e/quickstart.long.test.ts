import { type ChildProcess, spawn } from 'node:child_process'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../infra/local/free-port.ts'
import { openBrowser } from '../support/chromium.ts'
import { codeBlock } from '../support/code-block.ts'
import { endChild } from '../support/end-child.ts'
import { needs } from '../support/needs.ts'
import { elsewhere, installThere, runThere } from '../support/packed.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/test-projects.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const base = temporaryFolder('quickstart')
const started: ChildProcess[] = []
let tidegate: RunningTidegate
const folder = (...names: string[]) => path.join(base, ...names)

beforeAll(async () => {
  const dataDir = folder('.tidegate')
  tidegate = await startTidegate({ dataDir, env: { FROM_SOURCE: '1' } })
}, 60_000)
afterAll(async () => {
  for (const child of started) await endChild(child)
  await tidegate?.stop()
}, 60_000)

/** Returns a block of the page as its reader has it, on the server and port of the test. */
async function blockOf(name: string, port = 3000): Promise<string> {
  return localized(await codeBlock('guide/quickstart.md', `quickstart: ${name}`), port)
}

function localized(code: string, port = 3000): string {
  return code
    .replaceAll('http://127.0.0.1:8787', tidegate.baseUrl)
    .replaceAll('https://tidegate.example', tidegate.baseUrl)
    .replaceAll('pk_live_...', tidegate.credentials.live.publishable_key)
    .replaceAll('3000', String(port))
}

/** Runs what the comments at the top of a block say. */
async function runComments(code: string, cwd: string): Promise<void> {
  const [head = ''] = code.split(/^\s*import /m)
  for (const [, command] of head.matchAll(/(npm install .*|curl -O .*)/g))
    await runThere({ folder: cwd }, 'bash', '-ec', command ?? '')
}

/** Starts a program of the page with the secret key as the page says it is read. */
async function start(shell: string, command: string, cwd: string, sign: RegExp) {
  const secret = await blockOf('secret')
  const lines = `cd ${base}; ${secret}cd ${cwd}; exec ${command}`
  const stdio = ['ignore', 'pipe', 'pipe'] as const
  const child = spawn(shell, ['-ec', lines], { env: elsewhere(), stdio: [...stdio] })
  started.push(child)
  for (const output of [child.stdout, child.stderr])
    createInterface(output).on('line', (line) => sign.test(line) && child.emit('ready'))
  await new Promise((resolve, reject) => {
    child.once('ready', resolve)
    child.once('exit', (code) => reject(new Error(`${command} ended with ${code}`)))
  })
}

async function signUp(url: string): Promise<string> {
  await using browser = await openBrowser()
  const { page } = browser
  await page.goto(url)
  await page.fill('input[name=email]', 'ada@shop.example')
  await page.click('button')
  return (await (await page.waitForSelector('output:not(:empty)')).textContent()) ?? ''
}

// An automated browser is refused as a bot, and a forged token for itself.
async function expectVerified(url: string): Promise<void> {
  expect(await signUp(url)).toBe('This looks automated.')
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ sealedToken: 'none' })
  const answer = await fetch(`${url}/signup`, { method: 'POST', headers, body })
  const refused = [403, 'Please reload the page and try again.']
  expect([answer.status, await answer.text()]).toEqual(refused)
}

needs('chromium', 'shells', 'python').describe('the quickstart', () => {
  test.each(['bash', 'zsh'])(
    'works as printed with HTML and Express, in %s',
    async (shell) => {
      const cwd = folder(`express-${shell}`)
      const port = await freePort()
      await installThere(cwd)
      const server = await blockOf('express', port)
      await writeFile(path.join(cwd, 'index.html'), await blockOf('html'))
      await writeFile(path.join(cwd, 'server.mjs'), server)
      await runComments(server, cwd)
      await start(shell, 'node server.mjs', cwd, /127\.0\.0\.1/)
      await expectVerified(`http://127.0.0.1:${port}`)
    },
    120_000,
  )

  test('works as printed with HTML and Python', async () => {
    const cwd = folder('python')
    const port = await freePort()
    await mkdir(cwd)
    const app = await blockOf('python', port)
    await writeFile(path.join(cwd, 'index.html'), await blockOf('html'))
    await writeFile(path.join(cwd, 'app.py'), app)
    await runThere({ folder: cwd }, 'python3', '-m', 'venv', '.venv')
    await runThere({ folder: cwd }, '.venv/bin/pip', 'install', '--quiet', 'flask', 'cryptography')
    await runComments(app, cwd)
    await start('bash', '.venv/bin/python app.py', cwd, /Running on/)
    await expectVerified(`http://127.0.0.1:${port}`)
  }, 180_000)

  test('compiles with Next.js, as do the blocks about the browser package', async () => {
    const cwd = folder('next')
    await cp(path.join(root, 'docs/examples/nextjs'), cwd, { recursive: true })
    const manifest = path.join(cwd, 'package.json')
    const text = await readFile(manifest, 'utf8')
    await writeFile(manifest, text.replaceAll('http://127.0.0.1:8787', tidegate.baseUrl))
    const [page, route] = [await blockOf('next page'), await blockOf('next route')]
    await writeFile(path.join(cwd, 'app/sign-up-form.tsx'), page)
    await writeFile(path.join(cwd, 'app/page.tsx'), nextPage)
    await writeFile(path.join(cwd, 'app/signup/route.ts'), route)
    await writeFile(path.join(cwd, 'app/sdk.ts'), await sdkBlock('package'))
    await mkdir(path.join(cwd, 'app/hook'))
    await writeFile(path.join(cwd, 'app/hook/page.tsx'), hookPage(await sdkBlock('hook')))
    for (const [, command] of `${page}${route}`.matchAll(/(npm install .*)/g))
      await runThere({ folder: cwd }, 'bash', '-ec', command ?? '')
    await runThere({ folder: cwd, env: { NEXT_TELEMETRY_DISABLED: '1' } }, 'npx', 'next', 'build')
  }, 300_000)
})

const sdkBlock = async (name: string) =>
  localized(await codeBlock('guide/browser-sdk.md', `sdk: ${name}`))

const hookPage = (block: string) => `'use client'
${block.replace('\n\n', '\nexport default function Page() {\n')}
  return <button onClick={() => tidegate.getSession()}>Sign up</button>
}
`

const nextPage = `import { SignUpForm } from './sign-up-form'
export default function Page() {
  return <SignUpForm />
}
`
