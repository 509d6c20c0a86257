import { readFileSync } from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'
import { z } from 'zod'
import { parseJsonOrUndefined } from '../../infra/text.ts'
import {
  type LoopbackRequest,
  type LoopbackResponse,
  startLoopback,
} from '../../services/cli/loopback-server.ts'

const box = z.object({ left: z.number(), top: z.number(), width: z.number(), height: z.number() })
const layout = z.object({
  width: z.number(),
  height: z.number(),
  ratio: z.number(),
  scroll: z.number(),
  boxes: z.record(z.string(), box),
})
const peer = z.object({ bot: z.boolean().nullable(), why: z.array(z.string().nullable()) })
const posted = z.object({
  phase: z.enum(['load', 'act']),
  sessionId: z.string(),
  sealedToken: z.string(),
  botd: peer,
  fpscanner: peer,
})

/** Positions of the fields in the viewport in CSS pixels. `ratio`: screen pixels per CSS pixel. */
export type Layout = z.output<typeof layout>
export type Peer = z.output<typeof peer>
export type Posted = z.output<typeof posted>
export type Phase = Posted['phase']

/** Reports from the page during a run. */
export interface Visit {
  url: string
  /** Resolves when the page is requested. */
  begun: Promise<void>
  layout(): Layout | undefined
  /** Rejects with an error of the page. */
  posted(phase: Phase): Promise<Posted>
}

export interface Site {
  visit(run: string): Visit
  close(): Promise<void>
}

interface SiteOptions {
  endpoint: string
  publishableKey: string
}

/** Serves the page that every case opens, under `/classic/` without modules, for clients that cannot load them. */
export async function openSite(options: SiteOptions): Promise<Site> {
  const html = readFileSync(path.join(import.meta.dirname, 'page/index.html'), 'utf8')
  const settings = `window.evalSettings = ${JSON.stringify(options)};`
  const script = settings + (await bundlePage())
  const sdk = await classicSdk(options.endpoint)
  const visits = new Map<string, ReturnType<typeof createVisit>>()
  const pages: Record<string, () => LoopbackResponse> = {
    p: () => page(html),
    classic: () => page(html.replace('"/page.js"', '"/classic.js"')),
    'page.js': () => javascript(script),
    'classic.js': () => javascript(sdk + script),
  }
  const server = await startLoopback({
    port: 0,
    async handle(request) {
      const [, part = '', run = ''] = request.url.split(/[/?]/)
      const visit = visits.get(run)
      if (request.method === 'POST' && visit) return visit.receive(part, request)
      visit?.begin()
      return pages[part]?.() ?? { status: 404 }
    },
  })
  return {
    visit(run) {
      const visit = createVisit(`${server.url}p/${run}`)
      visits.set(run, visit)
      return visit
    },
    close: () => server.close(),
  }
}

function createVisit(url: string) {
  const answers = { load: Promise.withResolvers<Posted>(), act: Promise.withResolvers<Posted>() }
  const begun = Promise.withResolvers<void>()
  let known: Layout | undefined
  // Prevents unhandled rejections.
  for (const { promise } of Object.values(answers)) promise.catch(() => {})
  const fail = (error: unknown) => {
    for (const { reject } of Object.values(answers)) reject(error)
  }
  return {
    url,
    begun: begun.promise,
    begin: () => begun.resolve(),
    layout: () => known,
    posted: (phase: Phase) => answers[phase].promise,
    receive(part: string, { body }: LoopbackRequest): LoopbackResponse {
      const value = parseJsonOrUndefined(body)
      if (part === 'layout') known = layout.safeParse(value).data ?? known
      if (part === 'failed') fail(new Error(`in the page: ${body}`))
      const told = part === 'result' ? posted.safeParse(value) : undefined
      if (told?.error) fail(told.error)
      if (told?.data) answers[told.data.phase].resolve(told.data)
      return { status: 204 }
    },
  }
}

const noStore = { 'cache-control': 'no-store' }
const page = (body: string): LoopbackResponse => {
  return { status: 200, headers: { ...noStore, 'content-type': 'text/html; charset=utf-8' }, body }
}
const javascript = (body: string): LoopbackResponse => {
  return {
    status: 200,
    headers: { ...noStore, 'content-type': 'text/javascript; charset=utf-8' },
    body,
  }
}

/** Bundles the page's script with both peers. */
async function bundlePage(): Promise<string> {
  const entryPoints = [path.join(import.meta.dirname, 'page/page.js')]
  const options = {
    bundle: true,
    format: 'iife',
    target: 'chrome80',
    write: false,
    logLevel: 'error',
  } as const
  const { outputFiles } = await build({ ...options, entryPoints })
  return outputFiles[0]?.text ?? ''
}

/** Returns the server's SDK as a script that sets `evalSdk`. */
async function classicSdk(endpoint: string): Promise<string> {
  const contents = await (await fetch(`${endpoint}/t.js`)).text()
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    format: 'iife',
    globalName: 'evalSdk',
    write: false,
    logLevel: 'silent',
  })
  return `${outputFiles[0]?.text ?? ''};window.evalSdk = evalSdk;`
}
