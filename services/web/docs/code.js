// Browsers disable the clipboard on plain HTTP pages, except on localhost.
const canCopy = navigator.clipboard !== undefined

for (const block of document.querySelectorAll('pre')) {
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.querySelector('code')?.textContent ?? '')
    button.textContent = 'Copied'
  })
  const frame = document.createElement('div')
  frame.className = 'code-block'
  block.replaceWith(frame)
  frame.append(block, ...(canCopy ? [button] : []))
}

// Switches all tab lists of the page, because a reader uses only one framework.
for (const tabs of document.querySelectorAll('.tabs')) {
  const sections = [...tabs.querySelectorAll('section')]
  const list = document.createElement('div')
  list.role = 'tablist'
  list.className = 'segmented'
  for (const section of sections) {
    const button = document.createElement('button')
    button.type = 'button'
    button.role = 'tab'
    button.textContent = section.dataset.tab
    button.addEventListener('click', () => chooseTab(section.dataset.tab))
    button.addEventListener('keydown', ({ key }) => {
      const next = { ArrowRight: button.nextSibling, ArrowLeft: button.previousSibling }[key]
      next?.focus()
      next?.click()
    })
    section.role = 'tabpanel'
    section.querySelector('p')?.remove()
    list.append(button)
  }
  tabs.prepend(list)
  showTab(tabs, sections[0]?.dataset.tab)
}

function chooseTab(name) {
  for (const tabs of document.querySelectorAll('.tabs')) showTab(tabs, name)
}

function showTab(tabs, name) {
  const sections = [...tabs.querySelectorAll('section')]
  if (!sections.some((section) => section.dataset.tab === name)) return
  for (const section of sections) section.hidden = section.dataset.tab !== name
  for (const button of tabs.querySelectorAll('[role="tab"]')) {
    const isChosen = button.textContent === name
    button.ariaSelected = String(isChosen)
    button.tabIndex = isChosen ? 0 : -1
  }
}
