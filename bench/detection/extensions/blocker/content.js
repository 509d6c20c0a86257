// Like scriptlets, watches requests, prunes data that is read, and stops requests for advertisements.
const watched = (owner, name, refuses) => {
  owner[name] = new Proxy(owner[name], {
    apply(target, self, args) {
      if (refuses(String(args[0]))) return undefined
      return Reflect.apply(target, self, args)
    },
  })
}

const isAdvertising = (text) => /doubleclick|googlesyndication|adsbygoogle/.test(text)

watched(globalThis, 'fetch', isAdvertising)
watched(globalThis, 'setTimeout', isAdvertising)
watched(EventTarget.prototype, 'addEventListener', isAdvertising)
watched(XMLHttpRequest.prototype, 'open', () => false)
watched(JSON, 'parse', () => false)
Object.defineProperty(globalThis, 'adsbygoogle', { value: { loaded: true, push: () => {} } })
