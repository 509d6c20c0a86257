import { type ChildProcess, spawn } from 'node:child_process'
import { cp, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect } from 'vitest'
import { openBrowser } from '../support/chromium.ts'
import { endChild } from '../support/end-child.ts'
import { needs } from '../support/needs.ts'
import { elsewhere, installThere, runThere } from '../support/packed.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/test-projects.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { test } = needs('chromium')

const base = temporaryFolder('examples')
let tidegate: RunningTidegate
const started: ChildProcess[] = []

beforeAll(async () => {
  // The packages are built from a clone.
  tidegate = await startTidegate({ env: { FROM_SOURCE: '1' } })
}, 60_000)
afterAll(async () => {
  for (const child of started) await endChild(child)
  await tidegate?.stop()
}, 60_000)

/** An example in a folder of its own, with its packages. */
async function copied(name: string): Promise<string> {
  const folder = path.join(base, name)
  await cp(path.join(root, 'docs/examples', name), folder, { recursive: true })
  const manifest = path.join(folder, 'package.json')
  const text = await readFile(manifest, 'utf8')
  await writeFile(manifest, text.replaceAll('http://127.0.0.1:8787', tidegate.baseUrl))
  await installThere(folder)
  return folder
}

/** Starts the file with what the example is set by, and resolves with the address that it prints. */
async function serve(folder: string, ...args: string[]): Promise<string> {
  const { publishable_key, secret_key } = tidegate.credentials.live
  const settings = {
    TIDEGATE_URL: tidegate.baseUrl,
    TIDEGATE_PUBLISHABLE_KEY: publishable_key,
    TIDEGATE_SECRET_KEY: secret_key,
  }
  const child = spawn('node', args, {
    cwd: folder,
    env: { ...elsewhere(), NODE_ENV: 'production', PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  started.push(child)
  for await (const line of createInterface(child.stdout)) {
    const url = /http:\/\/\S+:\d+/.exec(line)?.[0]
    if (url) return url
  }
  throw new Error(`${args[0]} ended before it listened`)
}

/** Fills the form in and sends it; resolves with what the page says then, and with what it posted. */
async function signUp(url: string): Promise<{ said: string; posted: string }> {
  await using browser = await openBrowser()
  const { page } = browser
  const posting = page.waitForRequest('**/signup')
  await page.goto(url)
  await page.fill('input[name=email]', 'ada@shop.example')
  await page.click('button')
  const posted = (await posting).postData() ?? ''
  const said = await page.waitForSelector('p:not(:empty)')
  return { said: (await said.textContent()) ?? '', posted }
}

async function post(url: string, body: string): Promise<{ status: number; message: string }> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${url}/signup`, { method: 'POST', headers, body })
  const { message }: { message: string } = JSON.parse(await response.text())
  return { status: response.status, message }
}

async function expectVerified(url: string): Promise<void> {
  const { said, posted } = await signUp(url)
  expect(said).toBe('This looks automated.')
  const refused = { status: 403, message: 'Please reload the page and try again.' }
  expect(await post(url, posted)).toEqual(refused)
  expect(
    await post(url, JSON.stringify({ email: 'ada@shop.example', sealedToken: 'none' })),
  ).toEqual(refused)
  expect(await post(url, '{}')).toEqual(refused)
}

test('the Express example tells automation by its token, which counts once', async () => {
  await expectVerified(await serve(await copied('express'), 'server.js'))
}, 120_000)

test('the Next.js example compiles, is rendered by its server and does the same', async () => {
  const folder = await copied('nextjs')
  const env = { NEXT_TELEMETRY_DISABLED: '1' }
  await runThere({ folder, env }, 'npx', 'next', 'build')
  const next = 'node_modules/next/dist/bin/next'
  const url = await serve(folder, next, 'start', '-H', '127.0.0.1', '-p', '0')
  expect(await (await fetch(url)).text()).toContain('Sign up</button>')
  await expectVerified(url)
}, 400_000)
