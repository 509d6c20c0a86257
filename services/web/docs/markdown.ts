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

export interface RenderOptions {
  /** File of the page from the root: `docs/guide/scoring.md`. */
  file: string
  /** Returns true if the file is served as a page. Other relative links are rendered as text. */
  isPage: (file: string) => boolean
  /** Returns true if the file is served as is. A code span that names one becomes a link. */
  isExample?: (file: string) => boolean
  /** Relative path from the page to the root: `../../`. */
  up: string
}

/** Renders a docs page. Headings have the same ids as on GitHub, so that links between pages work in both places. */
export function renderPage(
  markdown: string,
  { file, isPage, isExample = () => false, up }: RenderOptions,
): RenderedPage {
  const headings: Heading[] = []
  const slugCounts = new Map<string, number>()
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens)
        const text = htmlText(html, '')
        const id = uniqueSlug(slugOf(text), slugCounts)
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
        return `<div class="scroll" tabindex="0"><table><thead>${row(header, 'th')}</thead><tbody>${body}</tbody></table></div>\n`
      },
    },
  })
  const html = groupTabs(marked.lexer(markdown))
    .map((part) => (Array.isArray(part) ? tabsHtml(part, marked) : marked.parser([part])))
    .join('')
  return { title: headings[0]?.text ?? file, html, headings }
}

interface Tab {
  title: string
  code: Token
}

/** Groups consecutive code blocks that each follow a bold title into tabs. */
function groupTabs(tokens: Token[]): (Token | Tab[])[] {
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
    const last = parts.at(-1)
    if (Array.isArray(last)) last.push({ title, code })
    else parts.push([{ title, code }])
    i += 1
  }
  return parts
}

/** Returns the text of an all-bold paragraph. */
function titleOf(token: Token): string | undefined {
  const inner = token.type === 'paragraph' ? (token.tokens ?? []) : []
  return inner.length === 1 && inner[0]?.type === 'strong' ? inner[0].text : undefined
}

// Without JavaScript, the blocks are stacked under their titles.
function tabsHtml(tabs: Tab[], marked: Marked): string {
  const parts = tabs.map(
    ({ title, code }) =>
      `<section data-tab="${escapeHtml(title)}"><p>${escapeHtml(title)}</p>${marked.parser([code])}</section>`,
  )
  return `<div class="tabs">${parts.join('')}</div>\n`
}

// Returns the URL of a link; undefined if its target is not served.
function targetOf(href: string, { file, isPage, up }: RenderOptions): string | undefined {
  if (/^(?:https?:|#)/.test(href)) return href
  const [to = '', fragment] = href.split('#')
  const target = path.posix.normalize(path.posix.join(path.posix.dirname(file), to))
  if (!isPage(target)) return undefined
  return up + addressOf(target) + (fragment ? `#${fragment}` : '')
}

/** Returns the URL path of a page: `docs/guide/scoring` for `docs/guide/scoring.md`. */
export const addressOf = (file: string): string => file.replace(/\.md$/, '')

const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')

function uniqueSlug(slug: string, slugCounts: Map<string, number>): string {
  const count = slugCounts.get(slug) ?? 0
  slugCounts.set(slug, count + 1)
  return count === 0 ? slug : `${slug}-${count}`
}

/** Returns the text of HTML, with tags replaced by `gap`. */
export const htmlText = (html: string, gap: string): string =>
  unescapeHtml(html.replace(/<[^>]*>/g, gap))
    .replace(/\s+/g, ' ')
    .trim()
