// Scripts that run before those of the page in a stock browser whose navigator.webdriver is true.

const rewrite = `
  const clean = (value) => {
    const automation = value && value.snapshot && value.snapshot.automation
    if (!automation) return value
    const quiet = { webdriver: false, webdriver_iframe: false, webdriver_worker: false, cdp_runtime: false }
    return { ...value, snapshot: { ...value.snapshot, automation: { ...automation, ...quiet } } }
  }
  const { stringify } = JSON`

export const evasions = {
  'json-rewrite': `(() => { ${rewrite}
    JSON.stringify = (value, ...rest) => stringify(clean(value), ...rest)
  })()`,
  'console-silent': `console.debug = () => {}; console.log = () => {}; console.table = () => {}`,
  'webdriver-defined': `Object.defineProperty(Navigator.prototype, 'webdriver', { get: () => false })`,
  'webdriver-own': `Object.defineProperty(navigator, 'webdriver', { get: () => undefined })`,
  'native-wrapped': `(() => {
    const shown = new WeakMap()
    const { toString } = Function.prototype
    const wrap = (owner, name, make) => {
      const original = owner[name]
      const made = { [name](...args) { return make.call(this, original, args) } }[name]
      shown.set(made, toString.call(original))
      owner[name] = made
    }
    wrap(Function.prototype, 'toString', function (original, args) {
      return shown.get(this) ?? original.apply(this, args)
    })
    const getter = Object.getOwnPropertyDescriptor(Navigator.prototype, 'webdriver').get
    const made = { get webdriver() { return false } }
    const fake = Object.getOwnPropertyDescriptor(made, 'webdriver').get
    shown.set(fake, toString.call(getter))
    Object.defineProperty(Navigator.prototype, 'webdriver', { get: fake, enumerable: true, configurable: true })
    wrap(console, 'debug', () => undefined)
  })()`,
  'fetch-wrapped': `(() => { ${rewrite}
    const { fetch: original } = window
    window.fetch = function fetch(...args) { return original.apply(this, args) }
    const { encode } = TextEncoder.prototype
    TextEncoder.prototype.encode = function (text) {
      try { return encode.call(this, stringify(clean(JSON.parse(text)))) } catch { return encode.call(this, text) }
    }
  })()`,
  'all-together': `(() => { ${rewrite}
    JSON.stringify = (value, ...rest) => stringify(clean(value), ...rest)
    console.debug = () => {}
    Object.defineProperty(Navigator.prototype, 'webdriver', { get: () => false, configurable: true })
  })()`,
}
