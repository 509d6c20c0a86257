import { readFileSync } from 'node:fs'
import path from 'node:path'

const read = (file: string) => readFileSync(path.join(import.meta.dirname, file), 'utf8')

export const siteHeaderStyle = read('site-header.css')
const mark = read('mark.svg')
  .trim()
  .replace('<svg', '<svg width="34" height="34" aria-hidden="true"')

const pages = {
  quickstart: ['docs/guide/quickstart', 'Quickstart'],
  docs: ['docs', 'Docs'],
  api: ['docs/api', 'API reference'],
  errors: ['docs/errors', 'Errors'],
} as const

const developmentPages = { demo: ['demo', 'Demo'], console: ['console', 'Console'] } as const

export interface HeaderOptions {
  /** Relative path from the page to the root, such as `../`, because a proxy may serve the site below a path. */
  root: string
  /** Page to mark as current. */
  current?: keyof typeof pages | 'demo' | undefined
  /** HTML to insert between the brand and the links, such as a search field. */
  insert?: string
  /** Adds links to the demo and the console, which a development server has. */
  isDevelopment?: boolean
}

/** Returns the HTML header of the home page, demo, docs, API reference and errors. */
export function siteHeader({ root, current, insert = '', isDevelopment }: HeaderOptions): string {
  const entries = { ...(isDevelopment && developmentPages), ...pages }
  const links = Object.entries(entries).map(([name, [to, title]]) => {
    const currentMark = name === current ? ' aria-current="page"' : ''
    return `<a href="${root}${to}"${currentMark}>${title}</a>`
  })
  return `<header class="top"><a class="brand" href="${root || './'}">${mark}Tidegate</a>${insert}<nav aria-label="Site">${links.join('')}</nav></header>`
}
