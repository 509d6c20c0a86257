import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { transform } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Operation,
  parseDocument,
  type ReferenceDocument,
} from '../../services/web/docs/api-document.ts'
import { overviewHtml, sectionHtml } from '../../services/web/docs/api-page.ts'
import { samplesOf } from '../../services/web/docs/api-samples.ts'
import { startWorld, type World } from '../authorization/world.ts'
import { readAnswers } from '../recorded/answers.ts'
import { examplesFile, examplesOf } from '../recorded/examples.ts'

const run = promisify(execFile)
const recorded = await readAnswers()
const examples = examplesOf(recorded)
let world: World
let document: ReferenceDocument
let operations: Operation[]
let calls: Operation[]
beforeAll(async () => {
  world = await startWorld()
  await world.app.ready()
  document = parseDocument(world.app.swagger())
  operations = document.sections.flatMap((section) => section.operations)
  calls = operations.filter(({ isWebhook }) => !isWebhook)
})
afterAll(() => world.stop())

// Verifying a domain asks the public DNS, and the description would be an example of itself.
const withoutExample = ['verifyManagedGateServiceDomain', 'getDescription']

describe('examples', () => {
  test('are those of the recorded answers', async () => {
    expect(JSON.parse(await readFile(examplesFile, 'utf8'))).toEqual(examples)
  })

  test('show every operation, and nothing that was masked', () => {
    const shown = Object.keys(examples)
    expect([...shown, ...withoutExample].sort()).toEqual(
      calls.map(({ operationId }) => operationId).sort(),
    )
    expect(JSON.stringify(examples)).not.toMatch(/<[a-z]/)
  })

  test('have a body where the operation takes JSON and needs it', () => {
    const lacking = calls.filter(
      ({ operationId, requestBody }) =>
        requestBody?.content?.['application/json'] &&
        !withoutExample.includes(operationId) &&
        examples[operationId]?.request === undefined,
    )
    expect(lacking.map(({ operationId }) => operationId)).toEqual([])
  })
})

describe('code samples', () => {
  const sent: { method: string; url: string; authorization: string | undefined; body: string }[] =
    []
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request
    sent.push({
      method,
      url,
      authorization: headers.authorization,
      body: String(await buffer(request)),
    })
    response.end('{}')
  })
  let folder: string
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-test-'))
  })
  afterAll(async () => {
    server.close()
    await rm(folder, { recursive: true })
  })
  const samples = () => {
    const { port } = server.address() as AddressInfo
    return calls.flatMap((operation) => {
      const example = examples[operation.operationId]
      const serverUrl = `http://127.0.0.1:${port}`
      return example
        ? [{ operation, example, ...samplesOf({ operation, example, serverUrl }) }]
        : []
    })
  }

  test('of curl send the recorded request', async () => {
    const script = samples().map(({ curl }) => `${curl} -s`)
    const env = {
      ...process.env,
      TIDEGATE_SECRET_KEY: 'token',
      POLL_TOKEN: 'token',
      AGENT_TOKEN: 'token',
      TIDEGATE_PUBLISHABLE_KEY: 'token',
    }
    await run('bash', ['-ec', script.join('\n')], { env })
    expect(sent.map(({ method, url, body }) => [method, url, body])).toEqual(
      samples().map(({ operation: { method }, example: { path: url, request } }) => [
        method,
        url,
        request === undefined ? '' : JSON.stringify(request),
      ]),
    )
    expect(sent.map(({ authorization }) => authorization)).toEqual(
      samples().map(({ operation: { security } }) =>
        security.length > 0 ? 'Bearer token' : undefined,
      ),
    )
  })

  test('of TypeScript compile', async () => {
    for (const { typescript } of samples())
      await transform(`${typescript}\nexport {}`, { loader: 'ts', format: 'esm', target: 'es2022' })
  })

  test('of Python compile', async () => {
    const file = path.join(folder, 'samples.json')
    await writeFile(file, JSON.stringify(samples().map(({ python }) => python)))
    const program =
      'import ast, json, sys\nfor code in json.load(open(sys.argv[1])): ast.parse(code)'
    await run('python3', ['-c', program, file])
  })
})

describe('pages', () => {
  const place = () => ({ document, examples, up: '../../' })

  test('list every operation once, with its scope, members and examples', () => {
    const pages = document.sections.map(({ title }) => sectionHtml(title, place()))
    for (const { operationId, path: template } of operations) {
      const found = pages.filter((html) => html.includes(`<h2 id="${operationId}"`))
      expect([operationId, found.length]).toEqual([operationId, 1])
      expect(found[0]).toContain(`<code>${template}</code>`)
    }
    const overview = overviewHtml(place())
    for (const { operationId } of operations) expect(overview).toContain(`#${operationId}"`)
  })

  test('name what a member is', () => {
    const html = sectionHtml('Sessions', place())
    expect(html).toContain(
      '<code>limit</code> <span class="type">integer, 1–200, default 50</span>',
    )
    expect(html).toContain('&quot;bot&quot; | &quot;human&quot; | &quot;inconclusive&quot;')
    expect(html).toContain('scope <code>sessions:list</code>')
    expect(html).toContain('<a href="../../docs/errors#auth.missing_api_key">')
  })
})
