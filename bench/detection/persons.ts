import path from 'node:path'
import { pause } from './hand.ts'
import type { Person } from './visit.ts'

export const extension = (name: string) => [
  `--load-extension=${path.join(import.meta.dirname, 'extensions', name)}`,
  '--disable-features=DisableLoadExtensionCommandLineSwitch',
]

/** Zooms in by this many steps, like a person who cannot read the page. */
const zoomed = (steps: number) =>
  Array.from({ length: steps }, () => ['key', 'ctrl+plus', ...pause(300)]).flat()

const webView =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 (KHTML, like Gecko) ShopApp/4.2'
const electron =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) shop/2.1.0 Chrome/87.0.4280.144 Electron/11.5.0 Safari/537.36'

const office = { TZ: 'Europe/Berlin' }

export const people: Person[] = [
  { name: 'chromium', browser: 'Chromium' },
  { name: 'chromium-looks', browser: 'Chromium', way: 'nothing' },
  { name: 'chromium-keyboard', browser: 'Chromium', way: 'keyboard' },
  {
    name: 'chromium-zoom',
    browser: 'Chromium',
    first: ['key', 'ctrl+plus', ...pause(300), 'key', 'ctrl+plus'],
  },
  {
    name: 'chromium-arabic',
    browser: 'Chromium',
    flags: ['--lang=ar'],
    env: { LANGUAGE: 'ar', TZ: 'Asia/Riyadh' },
  },
  {
    name: 'chromium-japanese',
    browser: 'Chromium',
    flags: ['--lang=ja'],
    env: { LANGUAGE: 'ja', TZ: 'Asia/Tokyo' },
  },
  { name: 'chromium-devtools', browser: 'Chromium', flags: ['--auto-open-devtools-for-tabs'] },
  { name: 'chromium-incognito', browser: 'Chromium', flags: ['--incognito'] },
  { name: 'chromium-slow', browser: 'Chromium', busy: 3 },
  {
    name: 'chromium-accessibility',
    browser: 'Chromium',
    flags: ['--force-renderer-accessibility'],
    way: 'keyboard',
  },
  {
    name: 'chromium-user-agent-switcher',
    browser: 'Chromium',
    flags: extension('user-agent'),
    extends: true,
  },
  {
    name: 'chromium-canvas-noise',
    browser: 'Chromium',
    flags: extension('canvas-noise'),
    extends: true,
  },
  { name: 'chromium-small-window', browser: 'Chromium', flags: ['--window-size=640,720'] },
  { name: 'chromium-maximized', browser: 'Chromium', flags: ['--start-maximized'] },
  { name: 'chromium-scaled', browser: 'Chromium', flags: ['--force-device-scale-factor=1.5'] },
  { name: 'chromium-no-gpu', browser: 'Chromium', flags: ['--disable-gpu', '--disable-3d-apis'] },
  {
    name: 'chromium-blocker',
    browser: 'Chromium',
    flags: extension('blocker'),
    extends: true,
  },
  {
    name: 'chromium-brave-like',
    browser: 'Chromium',
    flags: [
      ...extension('canvas-noise'),
      '--block-third-party-cookies',
      '--force-webrtc-ip-handling-policy=default_public_interface_only',
    ],
    extends: true,
    way: 'keyboard',
  },
  {
    name: 'chromium-full-screen-150',
    browser: 'Chromium',
    flags: ['--start-fullscreen'],
    first: zoomed(4),
  },
  {
    name: 'chromium-full-screen-200',
    browser: 'Chromium',
    flags: ['--start-fullscreen'],
    first: zoomed(6),
  },
  {
    name: 'chromium-wayland',
    browser: 'Chromium',
    flags: ['--ozone-platform=wayland'],
    screen: 'wayland',
  },
  {
    name: 'chromium-remote-desktop',
    browser: 'Chromium',
    flags: ['--disable-gpu'],
    screen: 'remote',
  },
  {
    name: 'chromium-remote-desktop-keyboard',
    browser: 'Chromium',
    flags: ['--disable-gpu'],
    screen: 'remote',
    way: 'keyboard',
  },
  { name: 'chromium-proxy', browser: 'Chromium', isProxied: true },
  // Three machines with the same image in an office, which differ only in input.
  { name: 'chromium-fleet-first', browser: 'Chromium', env: office },
  { name: 'chromium-fleet-second', browser: 'Chromium', env: office },
  { name: 'chromium-fleet-third', browser: 'Chromium', env: office },
  { name: 'firefox', browser: 'Firefox' },
  { name: 'firefox-looks', browser: 'Firefox', way: 'nothing' },
  { name: 'firefox-keyboard', browser: 'Firefox', way: 'keyboard' },
  { name: 'firefox-private', browser: 'Firefox', flags: ['--private-window'] },
  {
    name: 'firefox-resists',
    browser: 'Firefox',
    settings: { 'privacy.resistFingerprinting': true },
    ratio: 1,
  },
  {
    name: 'firefox-german',
    browser: 'Firefox',
    settings: { 'intl.accept_languages': 'de-DE,de,en' },
  },
  {
    name: 'firefox-blocker',
    browser: 'Firefox',
    // Debian installs this extension for all users; the other persons disable it.
    settings: { 'extensions.enabledScopes': 15, 'extensions.autoDisableScopes': 0 },
    scriptlets: true,
  },
  {
    name: 'firefox-librewolf-like',
    browser: 'Firefox',
    settings: {
      'privacy.resistFingerprinting': true,
      'privacy.resistFingerprinting.letterboxing': true,
      'webgl.disabled': true,
      'network.cookie.cookieBehavior': 5,
      'privacy.globalprivacycontrol.enabled': true,
      'media.peerconnection.ice.default_address_only': true,
    },
    ratio: 1,
    way: 'keyboard',
  },
  { name: 'firefox-full-screen-150', browser: 'Firefox', flags: ['--kiosk'], first: zoomed(5) },
  { name: 'firefox-full-screen-200', browser: 'Firefox', flags: ['--kiosk'], first: zoomed(7) },
  {
    name: 'firefox-screen-reader',
    browser: 'Firefox',
    settings: { 'accessibility.force_disabled': -1 },
    env: { GNOME_ACCESSIBILITY: '1' },
    way: 'keyboard',
  },
  { name: 'firefox-remote-desktop', browser: 'Firefox', screen: 'remote' },
  { name: 'firefox-proxy', browser: 'Firefox', isProxied: true },
  { name: 'webkitgtk', browser: 'WebKitGTK' },
  { name: 'webkitgtk-looks', browser: 'WebKitGTK', way: 'nothing' },
  { name: 'webkitgtk-keyboard', browser: 'WebKitGTK', way: 'keyboard' },
  { name: 'webkitgtk-app', browser: 'WebKitGTK', flags: [`--user-agent=${webView}`] },
  { name: 'qtwebengine', browser: 'QtWebEngine' },
  { name: 'qtwebengine-looks', browser: 'QtWebEngine', way: 'nothing' },
  {
    name: 'qtwebengine-electron',
    browser: 'QtWebEngine',
    flags: ['-s', 'content.headers.user_agent', electron],
  },
]
