import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Program for QtWebEngine of Debian 12, with the engine of Chromium 87. Exits when the page's title is `done`. */
const program = `
import sys
from PyQt5.QtCore import QUrl, QTimer
from PyQt5.QtWidgets import QApplication
from PyQt5.QtWebEngineWidgets import QWebEnginePage

class Page(QWebEnginePage):
    def javaScriptConsoleMessage(self, level, text, line, source):
        print(level, text, flush=True)

app = QApplication(sys.argv[:1])
page = Page()
page.titleChanged.connect(lambda title: title == 'done' and app.quit())
page.loadFinished.connect(lambda _: page.runJavaScript(sys.argv[2]))
page.load(QUrl(sys.argv[1]))
QTimer.singleShot(40000, lambda: app.exit(1))
sys.exit(app.exec_())
`

const env = {
  QT_QPA_PLATFORM: 'offscreen',
  QTWEBENGINE_DISABLE_SANDBOX: '1',
  QTWEBENGINE_CHROMIUM_FLAGS: '--no-sandbox --disable-gpu',
}

/** Runs the script in a page of an old engine until it sets the title `done`. Returns the console's lines. */
export async function runInOldEngine(url: string, script: string): Promise<string[]> {
  const child = spawn('/usr/bin/python3', ['-c', program, url, script], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`the old engine ended with ${code}:\n${text}`)
  return text.split('\n').filter(Boolean)
}
