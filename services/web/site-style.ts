import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { siteHeaderStyle } from '../../infra/http/site-header.ts'
import { baseStyle } from '../../infra/http/theme.ts'

/** Returns the style of the home page, demo, docs and consent pages. */
export async function siteStyle(): Promise<string> {
  const file = path.join(import.meta.dirname, 'pages/site.css')
  return baseStyle + siteHeaderStyle + (await readFile(file, 'utf8'))
}
