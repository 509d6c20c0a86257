const input = document.getElementById('search')
const list = document.getElementById('found')
const maxResults = 12
let entries

input.addEventListener('focus', () => void loadEntries())
input.addEventListener('input', () => void showResults())
input.addEventListener('keydown', (event) => {
  if (event.key === 'ArrowDown') list.querySelector('a')?.focus()
  if (event.key === 'Enter') list.querySelector('a')?.click()
})
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') list.hidden = true
  if (event.key !== '/' || event.target !== document.body) return
  event.preventDefault()
  input.focus()
})

async function loadEntries() {
  entries ??= fetch(`${input.dataset.root}docs/search.json`)
    .then((response) => (response.ok ? response.json() : Promise.reject(response.status)))
    .catch(() => {
      entries = undefined
      return []
    })
  return entries
}

async function showResults() {
  const { value } = input
  const words = value.toLowerCase().split(/\s+/).filter(Boolean)
  const results = words.length === 0 ? [] : await search(words)
  if (input.value !== value) return
  list.hidden = words.length === 0
  list.replaceChildren(...(results.length > 0 ? results.map(resultItem) : [emptyItem()]))
}

// Common search terms, with the words that the pages use instead.
const synonyms = Object.assign(Object.create(null), {
  quickstart: ['get started', 'start tidegate'],
  install: ['npm install', 'package', 'image', 'chart'],
  gdpr: ['erasure', 'privacy', 'personal data'],
  'api key': ['secret key', 'publishable key'],
  block: ['verdict', 'refuse'],
  pricing: ['costs', 'units'],
  docker: ['image', 'compose'],
  kubernetes: ['chart', 'helm'],
  delete: ['erase', 'erasure'],
  login: ['sign in', 'log in'],
  backup: ['restore'],
})

/** Returns terms, each a word and its synonyms. A phrase that has synonyms is one term. */
function termsOf(words) {
  const phrase = words.join(' ')
  if (synonyms[phrase]) return [[phrase, ...synonyms[phrase]]]
  return words.map((word) => [word, ...(synonyms[word] ?? [])])
}

// Returns the best entries that match every term. Titles rank highest, and guides before internals.
async function search(words) {
  const terms = termsOf(words)
  const scored = (await loadEntries()).flatMap((entry) => {
    const title = `${entry.page} ${entry.title}`.toLowerCase()
    const text = entry.text.toLowerCase()
    let score = rankOf(entry.address)
    for (const term of terms) {
      const isIn = (text) => term.some((word) => text.includes(word))
      if (!isIn(title) && !isIn(text)) return []
      if (isIn(title)) score += 4
      // Prefer the typed word over its synonyms.
      if (title.includes(term[0]) || text.includes(term[0])) score += 2
    }
    return [{ entry, score, terms }]
  })
  return scored.toSorted((a, b) => b.score - a.score).slice(0, maxResults)
}

function rankOf(address) {
  if (address.startsWith('docs/guide/quickstart')) return 3
  if (address.startsWith('docs/guide/')) return 2
  return address.startsWith('docs/internals/') ? -4 : 0
}

function resultItem({ entry: { address, page, title, text }, terms }) {
  const link = document.createElement('a')
  link.href = input.dataset.root + address
  const name = document.createElement('b')
  name.textContent = page === title ? page : `${page}: ${title}`
  link.append(name, snippet(text, terms.flat()))
  const line = document.createElement('li')
  line.append(link)
  return line
}

/** Returns the text around the first match, with the match highlighted. */
function snippet(text, words) {
  const lower = text.toLowerCase()
  const word = words.find((word) => lower.includes(word)) ?? ''
  const at = word ? lower.indexOf(word) : 0
  const from = Math.max(0, at - 50)
  const mark = document.createElement('mark')
  mark.textContent = text.slice(at, at + word.length)
  const line = document.createElement('small')
  line.append(
    (from > 0 ? '… ' : '') + text.slice(from, at),
    mark,
    text.slice(at + word.length, at + word.length + 90),
  )
  return line
}

function emptyItem() {
  const line = document.createElement('li')
  line.textContent = 'No results.'
  return line
}
