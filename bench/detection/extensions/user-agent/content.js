// Like user-agent switchers, shadows properties of the page's navigator but not those of workers.
const userAgent =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/155.0.0.0 Safari/537.36'
const values = { userAgent, appVersion: userAgent.replace('Mozilla/', ''), platform: 'Win32' }
for (const [name, value] of Object.entries(values)) {
  Object.defineProperty(navigator, name, { get: () => value, configurable: true })
}
