// Bare DevTools protocol. With `options.agent`, takes screenshots, pauses and clicks at positions, like AI agents.
import { setTimeout as delay } from 'node:timers/promises'
import CDP from 'chrome-remote-interface'
import { plainChromium } from './attach.mjs'
import { createNumbers, drive, options, text } from './common.mjs'

const next = createNumbers()
let client

async function at(id) {
  const { root } = await client.DOM.getDocument()
  const { nodeId } = await client.DOM.querySelector({ nodeId: root.nodeId, selector: `#${id}` })
  const { model } = await client.DOM.getBoxModel({ nodeId })
  const [left, top, right, , , bottom] = model.content
  const off = options.agent ? () => 0.3 + next() * 0.4 : () => 0.5
  return {
    x: Math.round(left + (right - left) * off()),
    y: Math.round(top + (bottom - top) * off()),
  }
}

async function click(id) {
  if (options.agent) await look()
  const point = await at(id)
  await client.Input.dispatchMouseEvent({ type: 'mouseMoved', ...point })
  const button = { button: 'left', clickCount: 1, ...point }
  await client.Input.dispatchMouseEvent({ type: 'mousePressed', ...button })
  if (options.agent) await delay(40 + next() * 60)
  await client.Input.dispatchMouseEvent({ type: 'mouseReleased', ...button })
}

async function look() {
  await client.Page.captureScreenshot({ format: 'jpeg', quality: 60 })
  await delay(500 + next() * 900)
}

async function type(words) {
  if (options.insert) return client.Input.insertText({ text: words })
  for (const letter of words) {
    const code = /[a-z]/i.test(letter) ? `Key${letter.toUpperCase()}` : ''
    await client.Input.dispatchKeyEvent({ type: 'keyDown', text: letter, key: letter, code })
    await client.Input.dispatchKeyEvent({ type: 'keyUp', key: letter, code })
    if (options.agent) await delay(20 + next() * 40)
  }
}

async function press(key, code) {
  await client.Input.dispatchKeyEvent({ type: 'keyDown', key, code, windowsVirtualKeyCode: 40 })
  await client.Input.dispatchKeyEvent({ type: 'keyUp', key, code, windowsVirtualKeyCode: 40 })
}

await drive({
  async load(url) {
    const { port } = new URL(await plainChromium())
    client = await CDP({
      port: Number(port),
      local: true,
      target: (targets) => targets.find((t) => t.type === 'page'),
    })
    await client.Page.enable()
    await client.Page.navigate({ url })
  },
  async act() {
    for (const id of ['name', 'email', 'message']) {
      await click(id)
      await type(text[id])
    }
    await click('terms')
    await client.DOM.focus({ nodeId: await nodeOf('topic') })
    await press('ArrowDown', 'ArrowDown')
    await click('send')
  },
  close: () => client.Browser.close(),
})

async function nodeOf(id) {
  const { root } = await client.DOM.getDocument()
  return (await client.DOM.querySelector({ nodeId: root.nodeId, selector: `#${id}` })).nodeId
}
