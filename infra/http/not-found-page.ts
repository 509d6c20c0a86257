import { negotiate } from '@fastify/accept-negotiator'
import type { FastifyRequest } from 'fastify'
import { escapeHtml } from '../text.ts'
import { baseStyle, inlinePageHeaders } from './theme.ts'

const style = `${baseStyle}body { display: grid; gap: 1rem; max-width: 40rem; margin: auto; padding: 4rem 1.25rem; }\n`

export const notFoundPageHeaders = {
  ...inlinePageHeaders(style),
  'cache-control': 'no-store',
  vary: 'Accept',
}

// Paths for programs, which get JSON whatever their Accept header says.
const programPaths = /^\/(v\d+|metrics|livez|readyz|openapi\.json|console\/api)(\/|$)/

/** Returns true for a 404 in a browser, where an HTML page is more useful than the error envelope. */
export function wantsNotFoundPage({ is404, method, url, headers }: FastifyRequest): boolean {
  const path = url.split('?', 1)[0] ?? ''
  const isRead = method === 'GET' || method === 'HEAD'
  // All docs pages share a handler, so `is404` is false for an unknown one.
  if (!isRead || !(is404 || path.startsWith('/docs/')) || programPaths.test(path)) return false
  return negotiate(headers.accept ?? '', ['application/json', 'text/html']) === 'text/html'
}

export const notFoundPage = (requestId: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Page not found · Tidegate</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Page not found</h1>
<p>Check the address, or go to the <a href="/">start page</a>, the <a href="/console">console</a> or the
<a href="/docs">docs</a>.</p>
<p><small>Request <code>${escapeHtml(requestId)}</code></small></p>
</main>
</body>
</html>
`
