const input = document.getElementById('search')
const list = document.getElementById('found')
const most = 12
let entries

input.addEventListener('focus', () => void load())
input.addEventListener('input', () => void show())
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

async function load() {
  entries ??= fetch(`${input.dataset.root}docs/search.json`).then((response) => {
    if (response.ok) return response.json()
    entries = undefined
    return []
  })
  return entries
}

async function show() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
  const found = words.length === 0 ? [] : await search(words)
  list.hidden = words.length === 0
  list.replaceChildren(...(found.length > 0 ? found.map(item) : [nothing()]))
}

// Every word has to be in the part; those that have it in their title come first.
async function search(words) {
  const scored = (await load()).flatMap((entry) => {
    const title = `${entry.page} ${entry.title}`.toLowerCase()
    const whole = `${title} ${entry.text.toLowerCase()}`
    if (!words.every((word) => whole.includes(word))) return []
    return [{ entry, score: words.filter((word) => title.includes(word)).length }]
  })
  return scored
    .toSorted((one, other) => other.score - one.score)
    .slice(0, most)
    .map(({ entry }) => entry)
}

function item({ address, page, title }) {
  const link = document.createElement('a')
  link.href = input.dataset.root + address
  link.textContent = page === title ? page : `${page}: ${title}`
  const line = document.createElement('li')
  line.append(link)
  return line
}

function nothing() {
  const line = document.createElement('li')
  line.textContent = 'Nothing has all of these words.'
  return line
}

for (const block of document.querySelectorAll('pre')) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.querySelector('code')?.textContent ?? '')
    button.textContent = 'Copied'
  })
  const around = document.createElement('div')
  around.className = 'code'
  block.replaceWith(around)
  around.append(block, button)
}
