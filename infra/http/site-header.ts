import { readFileSync } from 'node:fs'
import path from 'node:path'

const read = (file: string) => readFileSync(path.join(import.meta.dirname, file), 'utf8')

export const siteHeaderStyle = read('site-header.css')
const mark = read('mark.svg')
  .trim()
  .replace('<svg', '<svg width="34" height="34" aria-hidden="true"')

const places = {
  quickstart: ['docs/guide/quickstart', 'Quickstart'],
  docs: ['docs', 'Docs'],
  api: ['docs/api', 'API reference'],
  errors: ['docs/errors', 'Errors'],
} as const

const ofDevelopment = { demo: ['demo', 'Demo'], console: ['console', 'Console'] } as const

export interface HeaderNeeds {
  /** Relative path from the page to the root, such as `../`, because a proxy may serve the site below a path. */
  up: string
  /** The link to the page itself. */
  current?: keyof typeof places | 'demo' | undefined
  /** HTML behind the brand, such as a search field. */
  between?: string
  /** The server has a demo and a console for whoever reads the page, as a development server does. */
  isDevelopment?: boolean
}

/** The header of the home page, the demo, docs, API reference and errors. */
export function siteHeader({ up, current, between = '', isDevelopment }: HeaderNeeds): string {
  const shown = { ...(isDevelopment && ofDevelopment), ...places }
  const links = Object.entries(shown).map(([name, [to, title]]) => {
    const here = name === current ? ' aria-current="page"' : ''
    return `<a href="${up}${to}"${here}>${title}</a>`
  })
  return `<header class="top"><a class="brand" href="${up || './'}">${mark}Tidegate</a>${between}<nav aria-label="Site">${links.join('')}</nav></header>`
}
