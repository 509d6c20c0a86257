import { negotiate } from '@fastify/accept-negotiator'
import type { FastifyRequest } from 'fastify'
import { escapeHtml } from '../text.ts'
import { oneFileHeaders, themeStyle } from './theme.ts'

const style = `${themeStyle}body { max-width: 40rem; padding: 2rem 1.25rem; }\na { color: var(--accent); }\n`

export const unknownPageHeaders = {
  ...oneFileHeaders(style),
  'cache-control': 'no-store',
  vary: 'Accept',
}

// Programs call these, whatever they say that they accept.
const forPrograms = /^\/(v\d+|metrics|livez|readyz|openapi\.json|console\/api)(\/|$)/

/** Whether a person looks for a page where there is none, so that HTML helps more than the error envelope. */
export function seeksPage({ is404, method, url, headers }: FastifyRequest): boolean {
  const path = url.split('?', 1)[0] ?? ''
  const isRead = method === 'GET' || method === 'HEAD'
  // A page of the docs is found by the handler of all of them.
  if (!isRead || !(is404 || path.startsWith('/docs/')) || forPrograms.test(path)) return false
  return negotiate(headers.accept ?? '', ['application/json', 'text/html']) === 'text/html'
}

export const unknownPage = (requestId: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>No such page · Tidegate</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>There is no page at this address</h1>
<p>Look at the address again, or begin at the <a href="/">start page</a>, in the <a href="/console">console</a> or in the
<a href="/docs">docs</a>.</p>
<p><small>Request <code>${escapeHtml(requestId)}</code></small></p>
</main>
</body>
</html>
`
