import { escapeHtml } from '../../../infra/text.ts'
import type { ApiSection, Operation, ReferenceDocument } from './api-document.ts'
import { type Example, samplesOf } from './api-samples.ts'
import { aboutHtml, inlineHtml, membersHtml, typeHtml } from './api-schema.ts'
import { codeHtml } from './code.ts'
import { documentHtml } from './layout.ts'
import type { SearchEntry } from './library.ts'
import { renderPage } from './markdown.ts'

export type Examples = Record<string, Example>

interface PageContext {
  document: ReferenceDocument
  examples: Examples
  /** Relative path from the page to the root, such as `../../`. */
  up: string
}

/** Renders the overview: conventions of the API and a list of all operations. */
export function overviewHtml({ document, up }: Omit<PageContext, 'examples'>): string {
  const { html } = renderPage(document.overview, {
    file: 'docs/api.md',
    isPage: () => false,
    up,
  })
  const sections = withOperations(document.sections).map(
    (section) =>
      `<h2 id="${section.slug}"><a href="${up}docs/api/${section.slug}">${escapeHtml(section.title)}</a></h2><p>${inlineHtml(section.description)}</p><ul class="operations">${section.operations.map((operation) => `<li>${linkHtml(operation, section, up)}</li>`).join('')}</ul>`,
  )
  return apiPageHtml('API reference', {
    document,
    up,
    current: undefined,
    main: `<main id="main" class="prose">${html}${sections.join('')}</main>`,
  })
}

/** Renders the operations of a tag, with members and examples side by side. */
export function sectionHtml(tag: string, { document, examples, up }: PageContext): string {
  const section = document.sections.find(({ title }) => title === tag)
  if (!section) throw new Error(`no operation has the tag ${tag}`)
  const operations = section.operations.map((operation) =>
    operationHtml(operation, { document, example: examples[operation.operationId], up }),
  )
  return apiPageHtml(section.title, {
    document,
    up,
    current: section,
    main: `<main id="main" class="prose"><h1>${escapeHtml(section.title)}</h1><p>${inlineHtml(section.description)}</p>${operations.join('')}</main>`,
  })
}

/** Returns a search entry for each operation. */
export function apiSearchEntries({ sections }: ReferenceDocument): SearchEntry[] {
  return sections.flatMap(({ slug, operations }) =>
    operations.map(({ operationId, summary, method, path, description = '' }) => ({
      address: `docs/api/${slug}#${operationId}`,
      page: 'API reference',
      title: summary,
      text: `${method} ${path} ${description}`,
    })),
  )
}

interface ApiPageParts {
  document: ReferenceDocument
  up: string
  current: ApiSection | undefined
  main: string
}

function apiPageHtml(title: string, { document, up, current, main }: ApiPageParts): string {
  return documentHtml({
    title,
    up,
    current: 'api',
    body: `<div class="docs api"><nav id="pages" popover aria-label="Pages">${navigation(document.sections, { up, current })}</nav>${main}</div>`,
  })
}

function navigation(
  sections: ApiSection[],
  { up, current }: Pick<ApiPageParts, 'up' | 'current'>,
): string {
  const overview = current ? '' : ' aria-current="page"'
  const items = withOperations(sections).map((section) => {
    const here = section === current
    const operations = section.operations.map(
      ({ operationId, summary }) =>
        `<li class="level-3"><a href="#${operationId}">${escapeHtml(summary)}</a></li>`,
    )
    return `<li><a href="${up}docs/api/${section.slug}"${here ? ' aria-current="page"' : ''}>${escapeHtml(section.title)}</a>${here ? `<ul>${operations.join('')}</ul>` : ''}</li>`
  })
  return `<p>API reference</p><ul><li><a href="${up}docs/api"${overview}>Overview</a></li>${items.join('')}<li><a href="${up}docs/errors">Errors</a></li><li><a href="${up}openapi.json">OpenAPI document</a></li></ul>`
}

/** Drops empty sections, because a process describes only the operations of its roles. */
const withOperations = (sections: ApiSection[]): ApiSection[] =>
  sections.filter(({ operations }) => operations.length > 0)

function linkHtml(operation: Operation, { slug }: ApiSection, up: string): string {
  const { operationId, summary } = operation
  return `${lineHtml(operation)} <a href="${up}docs/api/${slug}#${operationId}">${escapeHtml(summary)}</a>`
}

const lineHtml = ({ method, path }: Operation): string =>
  `<span class="line"><b class="method ${method.toLowerCase()}">${method}</b> <code>${escapeHtml(path)}</code></span>`

interface OperationContext {
  document: ReferenceDocument
  example: Example | undefined
  up: string
}

function operationHtml(operation: Operation, { document, example, up }: OperationContext): string {
  const { operationId, summary, description } = operation
  const parts = [
    `<h2 id="${operationId}">${escapeHtml(summary)} <a class="anchor" href="#${operationId}" aria-label="Link to this part">#</a></h2>`,
    lineHtml(operation),
    description ? `<p>${inlineHtml(description)}</p>` : '',
    accessHtml(operation),
    parametersHtml(operation, document),
    bodyHtml(operation, document),
    responsesHtml(operation, { document, up }),
  ]
  const samples = example ? samplesHtml(operation, { document, example }) : ''
  return `<section class="operation"><div>${parts.join('')}</div><div class="samples">${samples}</div></section>`
}

const keyTitles: Record<string, string> = {
  secretKey: 'Secret key',
  publishableKey: 'Publishable key',
  pollToken: 'Poll token of the Gate session',
  agentToken: 'Agent token',
}

function accessHtml(operation: Operation): string {
  if (operation.isWebhook) return ''
  const [scheme] = operation.security.flatMap((requirement) => Object.keys(requirement))
  if (scheme === undefined) return '<p class="access">No key needed</p>'
  const scope = operation['x-required-scope']
  return `<p class="access">${keyTitles[scope ? 'secretKey' : scheme] ?? scheme}${scope ? `, scope <code>${scope}</code>` : ''}</p>`
}

const groupTitles = { path: 'Path', query: 'Query', header: 'Headers', cookie: 'Cookies' } as const

function parametersHtml({ parameters }: Operation, { schemas }: ReferenceDocument): string {
  const parts = Object.entries(groupTitles).map(([place, title]) => {
    const items = parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, required, description, schema = {} }) => {
        const { items } = schema
        const type = typeHtml(items ?? schema, schemas)
        const traits = `${items ? '<small>repeatable</small>' : ''}${required ? '<small>required</small>' : ''}`
        return `<li><code>${escapeHtml(name)}</code> ${type}${traits}${description ? `<p>${inlineHtml(description)}</p>` : ''}</li>`
      })
    return items.length > 0 ? `<h3>${title}</h3><ul class="members">${items.join('')}</ul>` : ''
  })
  return parts.join('')
}

function bodyHtml({ requestBody }: Operation, { schemas }: ReferenceDocument): string {
  const [[type, { schema = {} }] = ['', {}]] = Object.entries(requestBody?.content ?? {})
  if (type === '') return ''
  return `<h3>Body <small>${escapeHtml(type)}</small></h3>${membersHtml(schema, schemas) || aboutHtml(schema, schemas)}`
}

function responsesHtml(
  { responses }: Operation,
  { document, up }: Pick<OperationContext, 'document' | 'up'>,
): string {
  const entries = Object.entries(responses)
  const successes = entries.filter(([status]) => Number(status) < 300)
  const failures = entries.filter(([status]) => Number(status) >= 400)
  const successSections = successes.map(([status, { content }]) => {
    const [[type, { schema = {} }] = ['', {}]] = Object.entries(content ?? {})
    const members = membersHtml(schema, document.schemas)
    return `<h3>Response ${status}${type ? ` <small>${escapeHtml(type)}</small>` : ''}</h3>${members}`
  })
  const errors = failures.map(
    ([status, { description }]) =>
      `<dt>${status}</dt><dd>${inlineHtml(description)
        .replaceAll('\n\n', '<br>')
        .replace(
          /<code>([a-z_]+\.[a-z_]+)<\/code>/g,
          `<a href="${up}docs/errors#$1"><code>$1</code></a>`,
        )}</dd>`,
  )
  const list =
    errors.length > 0
      ? `<details><summary>Errors</summary><dl>${errors.join('')}</dl></details>`
      : ''
  return successSections.join('') + list
}

function samplesHtml(
  operation: Operation,
  { document, example }: Pick<OperationContext, 'document'> & { example: Example },
): string {
  const { curl, typescript, python } = samplesOf({
    operation,
    example,
    serverUrl: document.serverUrl,
  })
  const tabs = [
    ['curl', codeHtml(curl, 'sh')],
    ['TypeScript', codeHtml(typescript, 'ts')],
    ['Python', codeHtml(python, 'python')],
  ].map(([title, html]) => `<section data-tab="${title}"><p>${title}</p>${html}</section>`)
  const response =
    example.response === undefined
      ? ''
      : codeHtml(JSON.stringify(example.response, undefined, 2), 'json')
  return `<div class="tabs">${tabs.join('')}</div><p class="status">Response <b>${example.status}</b></p>${response}`
}
