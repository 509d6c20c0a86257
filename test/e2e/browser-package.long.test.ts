import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect } from 'vitest'
import { openToken } from '../../infra/wire/sealed-token.ts'
import manifest from '../../package.json' with { type: 'json' }
import { writePackages } from '../../services/cli/package/build.ts'
import { needs } from '../support/needs.ts'
import { nodeProgram, publishedNodes } from '../support/node-versions.ts'
import { installThere, runThere } from '../support/packed.ts'
import { createRest } from '../support/rest.ts'
import { visitSite } from '../support/site.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/test-projects.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { describe, test } = needs('chromium')

interface Posted {
  sessionId: string
  sealedToken: string
}

const folder = temporaryFolder('browser-package')
let tidegate: RunningTidegate

beforeAll(async () => {
  tidegate = await startTidegate()
  const { browser } = await writePackages(folder)
  await installThere(path.join(folder, 'plain'), browser)
  await installThere(path.join(folder, 'react'), browser, 'react@19.3.1', 'react-dom@19.3.1')
}, 120_000)
afterAll(() => tidegate?.stop())

const options = () =>
  JSON.stringify({
    publishableKey: tidegate.credentials.live.publishable_key,
    endpoint: tidegate.baseUrl,
  })

/** The file, bundled as a site does it. */
async function bundled(site: 'plain' | 'react', contents: string): Promise<string> {
  const resolveDir = path.join(folder, site)
  const { outputFiles } = await build({
    stdin: { contents, resolveDir, loader: 'jsx' },
    bundle: true,
    minify: true,
    format: 'esm',
    jsx: 'automatic',
    write: false,
    logLevel: 'error',
  })
  return outputFiles[0]?.text ?? ''
}

async function inNode(version: string, site: 'plain' | 'react', script: string): Promise<string> {
  await writeFile(path.join(folder, site, 'run.js'), script)
  const { stdout } = await runThere(
    { folder: path.join(folder, site) },
    await nodeProgram(version),
    'run.js',
  )
  return stdout.trim()
}

const page = '<!doctype html><div id="root"></div><script type="module" src="/page.js"></script>'

async function expectSession({ sessionId, sealedToken }: Posted): Promise<void> {
  const { secret_key: secretKey } = tidegate.credentials.live
  expect(openToken(sealedToken, { secretKey })).toMatchObject({ session_id: sessionId })
  const detail = await createRest(tidegate.baseUrl, secretKey).session(sessionId)
  expect(detail.decision).toMatchObject({
    automation_status: 'automated',
    decision_status: 'final',
  })
  // It is a whole SDK: nothing that every page sends is missing.
  expect(detail.evidence?.missing).toEqual([])
}

describe('@tidegate/browser', () => {
  test('starts a session in a bundled page, and the module does nothing by itself', async () => {
    const script = await bundled(
      'plain',
      `import { start } from '@tidegate/browser'
      const before = document.querySelectorAll('iframe').length
      const tidegate = start(${options()})
      const { sessionId, sealedToken } = await tidegate.getSession()
      const again = start(${options()}) === tidegate
      await fetch('/signup', { method: 'POST', body: JSON.stringify({ sessionId, sealedToken, before, again }) })`,
    )
    const { posted, problems } = await visitSite<Posted & { before: number; again: boolean }>({
      html: page,
      script,
    })
    expect(posted).toMatchObject({ before: 0, again: true })
    expect(problems).toEqual([])
    await expectSession(posted)
  }, 60_000)

  test('is ready to be published with its provenance, its licences along', async () => {
    const installed = path.join(folder, 'plain/node_modules/@tidegate/browser')
    const read = (name: string) => readFile(path.join(installed, name), 'utf8')
    expect(JSON.parse(await read('package.json'))).toMatchObject({
      version: manifest.version,
      license: 'Apache-2.0',
      repository: manifest.repository,
      publishConfig: { access: 'public', provenance: true },
    })
    expect(await read('LICENSE')).toContain('Apache License')
    expect(await read('THIRD-PARTY-LICENSES')).toMatch(/^## @noble\/.*\(MIT\)\n\n.*Copyright/ms)
  })

  test.each(publishedNodes)(
    'on Node %s it may be imported, and says that there is no page',
    async (version) => {
      const told = await inNode(
        version,
        'plain',
        `const before = Object.getOwnPropertyNames(globalThis).length
      const { start } = await import('@tidegate/browser')
      const client = start(${options()})
      client.onError((error) => console.log(error.code))
      await client.getSession().catch((error) => console.log(error.code))
      client.destroy()
      console.log(Object.getOwnPropertyNames(globalThis).length - before)`,
      )
      expect(new Set(told.split('\n'))).toEqual(new Set(['client.no_page', '0']))
    },
  )

  test('is refused with a code where the server is not named', async () => {
    const script = await bundled(
      'plain',
      `import { start } from '@tidegate/browser'
      const code = await start({ publishableKey: 'pk_live_x' }).getSession().catch((error) => error.code)
      await fetch('/signup', { method: 'POST', body: JSON.stringify(code) })`,
    )
    expect((await visitSite({ html: page, script })).posted).toBe('client.invalid_options')
  }, 60_000)

  test('has types for strict callers, and refuses one without a server', async () => {
    const there = path.join(folder, 'react')
    await installThere(there, '@types/react@19.3.0')
    await writeFile(
      path.join(there, 'use.ts'),
      `import { type Handoff, start, type TidegateClient } from '@tidegate/browser'
      import { useTidegate } from '@tidegate/browser/react'
      const options = { publishableKey: 'pk_live_x', endpoint: 'https://tidegate.example' }
      export const client: TidegateClient = start(options)
      export const handoff: Promise<Handoff> = client.getSession({ binding: 'x' })
      export const hooked: TidegateClient = useTidegate(options)
      // @ts-expect-error
      start({ publishableKey: 'pk_live_x' })`,
    )
    const tsc = path.join(root, 'node_modules/.bin/tsc')
    const flags = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--lib', 'es2022,dom']
    const types = ['use.ts', '--ignoreConfig', '--types', '']
    for (const resolution of ['nodenext', 'bundler']) {
      const module = resolution === 'bundler' ? 'esnext' : resolution
      const kind = ['--module', module, '--moduleResolution', resolution]
      await runThere({ folder: there }, tsc, ...flags, ...types, ...kind)
    }
  }, 60_000)
})

describe('@tidegate/browser/react', () => {
  test('starts one session, also where React mounts everything twice', async () => {
    const script = await bundled(
      'react',
      `import { StrictMode, useEffect } from 'react'
      import { createRoot } from 'react-dom/client'
      import { useTidegate } from '@tidegate/browser/react'
      const done = (handoff) => fetch('/signup', { method: 'POST', body: JSON.stringify(handoff) })
      function SignUp() {
        const tidegate = useTidegate(${options()})
        useEffect(() => void tidegate.getSession().then(done), [tidegate])
        return <p>Sign up</p>
      }
      createRoot(document.querySelector('#root')).render(<StrictMode><SignUp /></StrictMode>)`,
    )
    const rest = createRest(tidegate.baseUrl, tidegate.credentials.live.secret_key)
    const before = await rest.sessions()
    const { posted, problems } = await visitSite<Posted>({ html: page, script })
    expect(problems).toEqual([])
    await expectSession(posted)
    expect((await rest.sessions()).length).toBe(before.length + 1)
  }, 60_000)

  test('passes every option on to start', async () => {
    const script = await bundled(
      'react',
      `import { useEffect } from 'react'
      import { createRoot } from 'react-dom/client'
      import { useTidegate } from '@tidegate/browser/react'
      const post = (body) => fetch('/signup', { method: 'POST', body: JSON.stringify(body) })
      function SignUp() {
        const tidegate = useTidegate({ ...${options()}, waitMs: -1 })
        useEffect(() => void tidegate.getSession().catch(({ code, message }) => post({ code, message })), [tidegate])
      }
      createRoot(document.querySelector('#root')).render(<SignUp />)`,
    )
    const { posted } = await visitSite({ html: page, script })
    expect(posted).toEqual({
      code: 'client.invalid_options',
      message: 'start: waitMs must be a number of milliseconds.',
    })
  }, 60_000)

  test.each(publishedNodes)('is rendered by a server on Node %s', async (version) => {
    const rendered = await inNode(
      version,
      'react',
      `import { createElement } from 'react'
      import { renderToString } from 'react-dom/server'
      import { useTidegate } from '@tidegate/browser/react'
      const SignUp = () => createElement('p', null, typeof useTidegate(${options()}).getSession)
      console.log(renderToString(createElement(SignUp)))`,
    )
    expect(rendered).toBe('<p>function</p>')
  })
})
