import { siteHeader } from '../../../infra/http/site-header.ts'
import { escapeHtml } from '../../../infra/text.ts'
import type { DocsSection } from './library.ts'
import { addressOf, type Heading } from './markdown.ts'

export interface Layout {
  title: string
  html: string
  headings: Heading[]
  sections: DocsSection[]
  /** File of the page; undefined for the index. */
  file?: string | undefined
  /** Relative path from the page to the root, because a proxy may serve the docs under a path. */
  up: string
}

/** Renders a docs page with its navigation. */
export function docsPage({ title, html, headings, sections, file, up }: Layout): string {
  return documentHtml({
    title,
    up,
    current: file === quickstart ? 'quickstart' : 'docs',
    body: `<div class="docs">
        <nav id="pages" popover aria-label="Pages">${navigation(sections, { file, up })}</nav>
        <main id="main" class="prose">${html}</main>
        ${contents(headings)}
      </div>`,
  })
}

interface DocumentOptions {
  title: string
  up: string
  current: 'quickstart' | 'docs' | 'api'
  body: string
}

/** Renders the document around a page's body: head, header and search. */
export function documentHtml({ title, up, current, body }: DocumentOptions): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${escapeHtml(title)} · Tidegate</title>
    <link rel="icon" href="${up}assets/mark.svg" type="image/svg+xml">
    <link rel="stylesheet" href="${up}assets/site.css">
    <link rel="stylesheet" href="${up}docs/assets/docs.css">
    <link rel="stylesheet" href="${up}docs/assets/prose.css">
    ${current === 'api' ? `<link rel="stylesheet" href="${up}docs/assets/api.css">` : ''}
    <script type="module" src="${up}docs/assets/docs.js"></script>
    <script type="module" src="${up}docs/assets/code.js"></script>
  </head>
  <body>
    <a class="skip" href="#main">Skip to the content</a>
    <div class="wrap">
      ${siteHeader({ root: up, current, insert: searchField(up) })}
      ${body}
    </div>
  </body>
</html>
`
}

const quickstart = 'docs/guide/quickstart.md'

// The button is only visible on phones, where it opens the navigation.
const searchField = (up: string) => `<search>
  <input id="search" type="search" placeholder="Search" aria-label="Search the docs" aria-controls="found" data-root="${up}">
  <ol id="found" class="menu-body" hidden></ol>
</search><button class="pages" type="button" popovertarget="pages">All pages</button>`

function navigation(sections: DocsSection[], { file, up }: Pick<Layout, 'file' | 'up'>): string {
  const api = `<li><a href="${up}docs/api">API reference</a></li><li><a href="${up}docs/errors">Errors</a></li>`
  return sections
    .map(({ title, entries }, index) => {
      const items = entries.map((entry) => {
        const current = entry.file === file ? ' aria-current="page"' : ''
        return `<li><a href="${up}${addressOf(entry.file)}"${current}>${escapeHtml(entry.title)}</a></li>`
      })
      return `<p>${escapeHtml(title)}</p><ul>${items.join('')}${index === 0 ? api : ''}</ul>`
    })
    .join('')
}

function contents(headings: Heading[]): string {
  const parts = headings.filter(({ level }) => level === 2 || level === 3)
  if (parts.length < 2) return ''
  const items = parts.map(
    ({ id, text, level }) =>
      `<li class="level-${level}"><a href="#${id}">${escapeHtml(text)}</a></li>`,
  )
  return `<aside aria-label="On this page"><p>On this page</p><ul>${items.join('')}</ul></aside>`
}

/** Renders `/docs`: every page with its summary. */
export function indexHtml(sections: DocsSection[], up: string): string {
  const parts = sections.map(({ title, entries }) => {
    const items = entries.map(
      ({ file, title: name, about }) =>
        `<li><a href="${up}${addressOf(file)}">${escapeHtml(name)}</a>: ${escapeHtml(about)}</li>`,
    )
    return `<h2>${escapeHtml(title)}</h2><ul>${items.join('')}</ul>`
  })
  return `<h1>Docs</h1>${parts.join('')}`
}
