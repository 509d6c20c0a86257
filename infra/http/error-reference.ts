import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { type ErrorEntry, errorTable } from '../errors/error-table.ts'
import { escapeHtml } from '../text.ts'
import { errorExample } from './api-overview.ts'
import { siteHeader, siteHeaderStyle } from './site-header.ts'
import { baseStyle, inlinePageHeaders } from './theme.ts'

const pageStyle = readFileSync(path.join(import.meta.dirname, 'error-reference.css'), 'utf8')
const style = baseStyle + siteHeaderStyle + pageStyle

const groups = [
  { title: 'Authentication', id: 'auth', prefixes: ['auth.'] },
  { title: 'Requests', id: 'request', prefixes: ['request.'] },
  { title: 'Collect sessions', id: 'session', prefixes: ['session.', 'transport.'] },
  { title: 'Gate', id: 'gate', prefixes: ['gate.'] },
  { title: 'Console', id: 'console', prefixes: ['console.'] },
  { title: 'Rate limits', id: 'rate_limit', prefixes: ['rate_limit.'] },
  { title: 'Server', id: 'server', prefixes: ['internal.', 'service.'] },
]

/** Adds `GET /docs/errors`, to which the `docs_url` of every error links. */
export function errorReferenceRoute(app: FastifyInstance): void {
  const page = errorReference()
  const headers = { ...inlinePageHeaders(style), 'cache-control': 'no-cache' }
  // Hidden from the OpenAPI document, because it is a page for people.
  app.get('/docs/errors', { schema: { hide: true } }, (_, reply) =>
    reply.headers(headers).send(page),
  )
}

function errorReference(): string {
  const sections = groups.map(({ title, id, prefixes }) => {
    const entries = Object.entries(errorTable).filter(([code]) =>
      prefixes.some((prefix) => code.startsWith(prefix)),
    )
    return { title, id, entries }
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tidegate API errors</title>
<style>${style}</style>
</head>
<body>
${siteHeader({ root: '../', current: 'errors' })}
<main>
<h1>API errors</h1>
<p>Every failed request returns this JSON. Branch on <code>code</code> and <code>status</code>: codes are stable,
while messages are for people and can change. Quote <code>request_id</code> when you ask for help. It is also in the
header <code>X-Request-Id</code>.</p>
<pre tabindex="0"><code>${escapeHtml(errorExample)}</code></pre>
<p><code>retryable</code> says whether the same request can succeed later. Wait the number of seconds in the header
<code>Retry-After</code>; without that header, wait longer after each failure.</p>
<nav aria-label="Codes"><ul>
${sections.flatMap(({ entries }) => entries.map(link)).join('\n')}
</ul></nav>
${sections.map(section).join('\n')}
</main>
</body>
</html>
`
}

type Entries = [string, ErrorEntry][]

function link([code, { status }]: [string, ErrorEntry]): string {
  return `<li><a href="#${code}">${code}</a><span>${status}</span></li>`
}

function section({ title, id, entries }: { title: string; id: string; entries: Entries }): string {
  return `<section aria-labelledby="${id}">\n<h2 id="${id}">${title}</h2>\n${entries.map(article).join('\n')}\n</section>`
}

function article([code, entry]: [string, ErrorEntry]): string {
  const retry = entry.retry ?? retryText(entry)
  const details = entry.details ? `<p><code>details</code>: ${prose(entry.details)}</p>\n` : ''
  return `<section id="${code}" class="panel">
<header><h3><a href="#${code}">${code}</a></h3><p class="hint">HTTP ${entry.status}, ${prose(retry)}</p></header>
<p class="hint">Message: ${escapeHtml(entry.message)}</p>
<p>${prose(entry.meaning)}</p>
<p>${prose(entry.remedy)}</p>
${details}</section>`
}

const retryText = ({ retryable }: ErrorEntry) =>
  retryable ? 'the same request may succeed later' : 'the same request fails again'

function prose(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')
}
