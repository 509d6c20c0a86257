import path from 'node:path'
import { Marked, type Token } from 'marked'
import { escapeHtml, unescapeHtml } from '../../../infra/text.ts'
import { codeHtml } from './code.ts'

export interface Heading {
  level: number
  id: string
  text: string
}

export interface RenderedPage {
  title: string
  html: string
  headings: Heading[]
}

export interface Rendering {
  /** Of the page, from the root: `docs/guide/scoring.md`. */
  file: string
  /** Whether there is a page of this file. Other links are their text alone, because nothing would answer them. */
  isPage: (file: string) => boolean
  /** Tells files that are served as they are. A code span that names one links to it. */
  isExample?: (file: string) => boolean
  /** What leads from the page's address to the root: `../../`. */
  up: string
}

/** A page of the docs as HTML. Headings have the ids that links between the pages name, as on GitHub. */
export function renderPage(
  markdown: string,
  { file, isPage, isExample = () => false, up }: Rendering,
): RenderedPage {
  const headings: Heading[] = []
  const taken = new Map<string, number>()
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens)
        const text = htmlText(html, '')
        const id = distinct(slugOf(text), taken)
        headings.push({ level: depth, id, text })
        return `<h${depth} id="${id}">${html} <a class="anchor" href="#${id}" aria-label="Link to this part">#</a></h${depth}>\n`
      },
      link({ href, tokens }) {
        const html = this.parser.parseInline(tokens)
        const target = targetOf(href, { file, isPage, up })
        return target === undefined ? html : `<a href="${escapeHtml(target)}">${html}</a>`
      },
      code: ({ text, lang }) => codeHtml(text, lang),
      codespan({ text }) {
        const code = `<code>${escapeHtml(text)}</code>`
        return isExample(text) ? `<a href="${up}${escapeHtml(text)}">${code}</a>` : code
      },
      table({ header, rows }) {
        const row = (cells: typeof header, tag: 'th' | 'td') =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`
        const body = rows.map((cells) => row(cells, 'td')).join('\n')
        return `<div class="table" tabindex="0"><table><thead>${row(header, 'th')}</thead><tbody>${body}</tbody></table></div>\n`
      },
    },
  })
  const html = partsOf(marked.lexer(markdown))
    .map((part) => (Array.isArray(part) ? tabsHtml(part, marked) : marked.parser([part])))
    .join('')
  return { title: headings[0]?.text ?? file, html, headings }
}

interface Tab {
  title: string
  code: Token
}

/** Returns the tokens, with blocks of code in a row that each have a title in bold as one list of tabs. */
function partsOf(tokens: Token[]): (Token | Tab[])[] {
  const shown = tokens.filter(({ type }) => type !== 'space' && type !== 'html')
  const parts: (Token | Tab[])[] = []
  for (let i = 0; i < shown.length; i++) {
    const [token, code] = [shown[i], shown[i + 1]]
    const title = token && titleOf(token)
    if (!token) continue
    if (title === undefined || code?.type !== 'code') {
      parts.push(token)
      continue
    }
    const before = parts.at(-1)
    if (Array.isArray(before)) before.push({ title, code })
    else parts.push([{ title, code }])
    i += 1
  }
  return parts
}

/** Returns the text of a paragraph that is bold as a whole. */
function titleOf(token: Token): string | undefined {
  const inner = token.type === 'paragraph' ? (token.tokens ?? []) : []
  return inner.length === 1 && inner[0]?.type === 'strong' ? inner[0].text : undefined
}

// Without scripts the blocks stand below each other, with their titles.
function tabsHtml(tabs: Tab[], marked: Marked): string {
  const parts = tabs.map(
    ({ title, code }) =>
      `<section data-tab="${escapeHtml(title)}"><p>${escapeHtml(title)}</p>${marked.parser([code])}</section>`,
  )
  return `<div class="tabs">${parts.join('')}</div>\n`
}

// Where a link of the page leads. undefined = to nothing that is served.
function targetOf(href: string, { file, isPage, up }: Rendering): string | undefined {
  if (/^(?:https?:|#)/.test(href)) return href
  const [to = '', fragment] = href.split('#')
  const named = path.posix.normalize(path.posix.join(path.posix.dirname(file), to))
  if (!isPage(named)) return undefined
  return up + addressOf(named) + (fragment ? `#${fragment}` : '')
}

/** `docs/guide/scoring` of `docs/guide/scoring.md`. */
export const addressOf = (file: string): string => file.replace(/\.md$/, '')

/** The id of a heading. */
const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')

function distinct(slug: string, taken: Map<string, number>): string {
  const count = taken.get(slug) ?? 0
  taken.set(slug, count + 1)
  return count === 0 ? slug : `${slug}-${count}`
}

/** The text of HTML, in which tags are replaced by `gap`. */
export const htmlText = (html: string, gap: string): string =>
  unescapeHtml(html.replace(/<[^>]*>/g, gap))
    .replace(/\s+/g, ' ')
    .trim()
