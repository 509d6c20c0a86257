// Like extensions that fill forms for a program, sets values and dispatches events by script, with human-like pauses.
const texts = {
  name: 'Maria Lindqvist',
  email: 'maria.lindqvist@example.org',
  message: 'Please call me back on Monday.',
}

const pause = (least, most) =>
  new Promise((resolve) => setTimeout(resolve, least + Math.random() * (most - least)))
const field = (id) => document.getElementById(id)

async function act() {
  for (const [id, text] of Object.entries(texts)) {
    await pause(400, 900)
    field(id).focus()
    field(id).value = text
    field(id).dispatchEvent(new InputEvent('input', { bubbles: true }))
    field(id).dispatchEvent(new Event('change', { bubbles: true }))
  }
  await pause(400, 900)
  field('terms').checked = true
  field('topic').value = 'help'
  await pause(400, 900)
  field('form').requestSubmit()
}

// The page sets this after its first hand-off.
const judged = setInterval(() => {
  if (document.documentElement.dataset.judged !== 'load') return
  clearInterval(judged)
  act()
}, 200)
