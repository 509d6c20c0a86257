import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'

const read = (file: string) => readFileSync(path.join(import.meta.dirname, file), 'utf8')

/** Design tokens and base style of every page. Must precede all other styles. */
export const baseStyle = read('tokens.css') + read('base.css')

/** Returns the headers of a self-contained page: its CSP allows only the given inline style. */
export const inlinePageHeaders = (style: string): Record<string, string> => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
})
