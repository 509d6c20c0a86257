import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'

const read = (file: string) => readFileSync(path.join(import.meta.dirname, file), 'utf8')

/** Colours, space and type that all pages share, before any other style. */
export const tokenStyle = read('tokens.css')
/** What pages that are one file begin with. */
export const themeStyle = tokenStyle + read('theme.css')

/** Headers of a page that is one file: its only style is the one within it. */
export const oneFileHeaders = (style: string): Record<string, string> => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
})
